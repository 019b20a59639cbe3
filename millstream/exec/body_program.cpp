// SPDX-License-Identifier: Apache-2.0
#include "millstream/exec/body_program.h"

#include <fmt/format.h>

namespace millstream {

Result<std::unique_ptr<BodyProgram>> BodyProgram::make(const KernelSpec& spec, std::string_view attribute) {
  for (const Body& b : spec.graph.bodies(spec.node)) {
    if (b.attribute != attribute) continue;
    std::unique_ptr<BodyProgram> program(new BodyProgram(spec.graph.body(b.body)));
    auto prepared = program->prepare(spec);
    if (!prepared.ok()) {
      bool inferred = true;
      for (const ValueId v : program->graph_.values()) {
        inferred = inferred && (program->graph_.kind(v) != ValueKind::output || program->graph_.name(v).empty() ||
                                program->graph_.desc(v).dtype != DType::undefined);
      }
      if (inferred) return std::move(prepared).error();
      program->broken_ = std::move(prepared).error();
    }
    return program;
  }
  return Error{ErrorCode::control_flow, fmt::format("{} \"{}\" has no {}", spec.type(), spec.name(), attribute)};
}

Result<void> BodyProgram::prepare(const KernelSpec& spec) {
  owner_inputs_ = spec.input_count();
  const auto captures = spec.graph.captures(spec.node);
  for (const ValueId v : graph_.values()) {
    if (const Tensor* constant = graph_.constant(v)) table_[v] = aligned_tensor(*constant);
    if (graph_.kind(v) != ValueKind::outer) continue;
    bool found = false;
    for (std::size_t i = 0; i < captures.size() && !found; ++i) {
      if (spec.graph.name(captures[i]) != graph_.name(v)) continue;
      outer_.push_back({v, i});
      found = true;
    }
    if (!found) {
      return Error{ErrorCode::control_flow, fmt::format("{} \"{}\": its body reads \"{}\", which the enclosing graph does not have",
                                                        spec.type(), spec.name(), graph_.name(v))};
    }
  }
  const std::vector<bool> bound(graph_.value_count(), false);
  MissingKernels missing;
  calls_.reserve(graph_.node_count());
  for (const NodeId n : graph_.order()) {
    Result<NodeCall> call = prepare_call(KernelSpec{graph_, n, spec.threads, spec.max_bytes}, body_kernels(), table_, bound);
    if (call.ok()) {
      calls_.push_back(std::move(call).value());
    } else if (call.error().code == ErrorCode::unsupported_operator) {
      missing.add(graph_, n, call.error());
    } else {
      return std::move(call).error();
    }
  }
  if (!missing.empty()) return missing.error();
  plan_drops();
  return {};
}

void BodyProgram::plan_drops() {
  std::vector<bool> later(graph_.value_count(), false);
  for (const ValueId v : graph_.outputs()) later[v.index] = true;
  std::vector<std::vector<ValueId>> by_call(calls_.size());
  for (std::size_t i = calls_.size(); i-- > 0;) {
    const auto last_use = [&](ValueId v) {
      if (later[v.index] || graph_.kind(v) == ValueKind::constant) return;
      later[v.index] = true;
      by_call[i].push_back(v);
    };
    for (const ValueId v : graph_.outputs(calls_[i].node)) last_use(v);
    for (const InputRef in : graph_.inputs(calls_[i].node)) {
      if (const auto v = in.get()) last_use(*v);
    }
    for (const ValueId v : graph_.captures(calls_[i].node)) last_use(v);
  }
  drop_begin_.push_back(0);
  for (const auto& list : by_call) {
    drops_.insert(drops_.end(), list.begin(), list.end());
    drop_begin_.push_back(static_cast<std::uint32_t>(drops_.size()));
  }
}

Result<std::vector<Tensor>> BodyProgram::run(std::vector<Tensor> inputs, KernelArgs& args) {
  if (broken_) return *broken_;
  const auto wanted = graph_.inputs();
  if (inputs.size() != wanted.size()) {
    return Error{ErrorCode::control_flow, fmt::format("body \"{}\" takes {} inputs, gets {}", graph_.name(), wanted.size(), inputs.size())};
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!fits(graph_.desc(wanted[i]), inputs[i])) {
      return Error{ErrorCode::shape, fmt::format("body \"{}\": input \"{}\" is {}, the body wants {}", graph_.name(), graph_.name(wanted[i]),
                                                 to_string(inputs[i].desc()), to_string(graph_.desc(wanted[i])))};
    }
    table_[wanted[i]] = std::move(inputs[i]);
  }
  for (const auto& [v, capture] : outer_) {
    if (!args.has_input(owner_inputs_ + capture)) {
      return Error{ErrorCode::control_flow, fmt::format("body \"{}\": outer value \"{}\" is not there", graph_.name(), graph_.name(v))};
    }
    table_[v] = args.input(owner_inputs_ + capture);
  }
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    MST_TRY_VOID(run_call(graph_, calls_[i], table_, args.scratch()));
    for (std::uint32_t d = drop_begin_[i]; d < drop_begin_[i + 1]; ++d) table_[drops_[d]] = Tensor();
  }
  std::vector<Tensor> out;
  for (const ValueId v : graph_.outputs()) out.push_back(table_[v]);
  for (const ValueId v : graph_.values()) {
    if (graph_.kind(v) != ValueKind::constant) table_[v] = Tensor();
  }
  return out;
}

}  // namespace millstream
