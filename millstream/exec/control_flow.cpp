// SPDX-License-Identifier: Apache-2.0
// If and Loop, and the table.
#include "millstream/exec/control_flow.h"

#include <array>

#include <fmt/format.h>

#include "millstream/exec/body_program.h"
#include "millstream/exec/executable.h"

namespace millstream {
namespace {

Error failed(std::string_view node, std::string_view what) {
  return Error{ErrorCode::kernel, fmt::format("node \"{}\": {}", node, what)};
}

Result<bool> truth(std::string_view node, std::string_view what, const Tensor& t) {
  if (t.dtype() != DType::boolean || t.elements() != 1) {
    return failed(node, fmt::format("its {} is {}, needs one bool", what, to_string(t.desc())));
  }
  return t.as<std::uint8_t>()[0] != 0;
}

// One element of the rank that a body declares for its counter or condition.
std::vector<std::int64_t> dims_of(const Graph& body, std::size_t input) {
  const TensorDesc& declared = body.desc(body.inputs()[input]);
  return std::vector<std::int64_t>(declared.elements() == 1 ? declared.shape->size() : 0, 1);
}

Tensor one_bool(bool value, std::vector<std::int64_t> dims) {
  Tensor t(DType::boolean, std::move(dims));
  t.as_mutable<std::uint8_t>()[0] = value ? 1 : 0;
  return t;
}

Tensor one_i64(std::int64_t value, std::vector<std::int64_t> dims) {
  Tensor t(DType::i64, std::move(dims));
  t.as_mutable<std::int64_t>()[0] = value;
  return t;
}

class IfKernel final : public Kernel {
 public:
  IfKernel(std::string name, std::unique_ptr<BodyProgram> yes, std::unique_ptr<BodyProgram> no)
      : name_(std::move(name)), yes_(std::move(yes)), no_(std::move(no)) {}

  Result<void> run(KernelArgs& args) override {
    MST_TRY(const bool taken, truth(name_, "condition", args.input(0)));
    MST_TRY(std::vector<Tensor> out, (taken ? yes_ : no_)->run({}, args));
    if (out.size() != args.output_count()) {
      return failed(name_, fmt::format("its branch gives {} outputs, needs {}", out.size(), args.output_count()));
    }
    for (std::size_t i = 0; i < out.size(); ++i) args.output(i) = std::move(out[i]);
    return {};
  }

 private:
  std::string name_;
  std::unique_ptr<BodyProgram> yes_, no_;
};

class LoopKernel final : public Kernel {
 public:
  LoopKernel(const KernelSpec& spec, std::unique_ptr<BodyProgram> body)
      : name_(spec.name()),
        body_(std::move(body)),
        carried_(spec.input_count() - 2),
        has_trips_(spec.has_input(0)),
        has_condition_(spec.has_input(1)) {}

  Result<void> run(KernelArgs& args) override {
    std::int64_t trips = 0;
    if (has_trips_) {
      const Tensor& t = args.input(0);
      if (t.dtype() != DType::i64 || t.elements() != 1) {
        return failed(name_, fmt::format("its trip count is {}, needs one i64", to_string(t.desc())));
      }
      trips = t.as<std::int64_t>()[0];
    }
    bool go_on = true;
    if (has_condition_) {
      MST_TRY(go_on, truth(name_, "condition", args.input(1)));
    }
    std::vector<Tensor> state;
    for (std::size_t i = 0; i < carried_; ++i) state.push_back(args.input(2 + i));
    std::vector<std::vector<Tensor>> turns(args.output_count() - carried_);  // by scan output
    for (std::int64_t turn = 0; go_on && (!has_trips_ || turn < trips); ++turn) {
      std::vector<Tensor> in = {one_i64(turn, dims_of(body_->graph(), 0)), one_bool(go_on, dims_of(body_->graph(), 1))};
      for (Tensor& t : state) in.push_back(std::move(t));
      MST_TRY(std::vector<Tensor> out, body_->run(std::move(in), args));
      // With a trip count and no condition the body's condition is "ignored" by the specification; with
      // neither it is the only way to an end, so it counts.
      if (has_condition_ || !has_trips_) {
        MST_TRY(go_on, truth(name_, "body's condition", out[0]));
      }
      state.assign(std::make_move_iterator(out.begin() + 1),
                   std::make_move_iterator(out.begin() + 1 + static_cast<std::ptrdiff_t>(carried_)));
      for (std::size_t k = 0; k < turns.size(); ++k) turns[k].push_back(std::move(out[1 + carried_ + k]));
    }
    for (std::size_t i = 0; i < carried_; ++i) args.output(i) = std::move(state[i]);
    for (std::size_t k = 0; k < turns.size(); ++k) {
      const TensorDesc& desc = body_->graph().desc(body_->graph().outputs()[1 + carried_ + k]);
      MST_TRY(args.output(carried_ + k), stack(turns[k], desc, 0, false, name_));
    }
    return {};
  }

 private:
  std::string name_;
  std::unique_ptr<BodyProgram> body_;
  std::size_t carried_;
  bool has_trips_, has_condition_;
};

constexpr std::array<KernelEntry, 3> kControlFlow = {{{"If", make_if}, {"Loop", make_loop}, {"Scan", make_scan}}};

}  // namespace

Result<std::unique_ptr<Kernel>> make_if(const KernelSpec& spec) {
  if (!spec.has_input(0)) return failed(spec.name(), "has no condition");
  MST_TRY(auto yes, BodyProgram::make(spec, "then_branch"));
  MST_TRY(auto no, BodyProgram::make(spec, "else_branch"));
  return std::unique_ptr<Kernel>(std::make_unique<IfKernel>(std::string(spec.name()), std::move(yes), std::move(no)));
}

Result<std::unique_ptr<Kernel>> make_loop(const KernelSpec& spec) {
  MST_TRY(auto body, BodyProgram::make(spec, "body"));
  const Graph& g = body->graph();
  const std::size_t outputs = spec.graph.outputs(spec.node).size();
  if (spec.input_count() < 2 || g.inputs().size() != spec.input_count() || g.outputs().size() != outputs + 1 ||
      outputs + 2 < spec.input_count()) {
    return Error{ErrorCode::control_flow, fmt::format("Loop \"{}\" has {} inputs and {} outputs, its body {} and {}", spec.name(),
                                                      spec.input_count(), outputs, g.inputs().size(), g.outputs().size())};
  }
  return std::unique_ptr<Kernel>(std::make_unique<LoopKernel>(spec, std::move(body)));
}

const KernelTable& body_kernels() {
  static const KernelTable table = [] {
    KernelTable joined = cpu_kernels();
    joined.add(kControlFlow);
    return joined;
  }();
  return table;
}

KernelTable all_kernels() { return body_kernels(); }

}  // namespace millstream
