// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan as one host-driven task each: the node's kernel runs its bodies. Captured values stand
// behind the node's own inputs, in the order of Graph::captures.
#include "millstream/exec/control_flow.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "millstream/exec/body_runner.h"

namespace millstream {
namespace {

Error bad(const std::string& node, std::string message) { return Error{ErrorCode::kernel, fmt::format("node \"{}\": {}", node, message)}; }

class ControlKernel : public Kernel {
 public:
  ControlKernel(const KernelSpec& spec) : name_(spec.name()), own_inputs_(spec.input_count()) {
    for (const ValueId v : spec.graph.captures(spec.node)) capture_names_.push_back(spec.graph.name(v));
  }

 protected:
  Captured captured(KernelArgs& args) {
    capture_values_.clear();
    for (std::size_t i = own_inputs_; i < args.input_count(); ++i) capture_values_.push_back(&args.input(i));
    return {capture_names_, capture_values_};
  }
  Result<bool> truth(const Tensor& t) const {
    if (t.dtype() != DType::boolean || t.elements() != 1) return bad(name_, fmt::format("the condition is {}, expected one bool", to_string(t.desc())));
    return t.as<std::uint8_t>()[0] != 0;
  }

  std::string name_;
  std::size_t own_inputs_;

 private:
  std::vector<std::string_view> capture_names_;
  std::vector<const Tensor*> capture_values_;
};

Result<BodyRunner> body_of(const KernelSpec& spec, std::string_view attribute) {
  for (const Body& b : spec.graph.bodies(spec.node)) {
    if (b.attribute == attribute) return BodyRunner::make(spec.graph.body(b.body), kernels_with_control_flow(), spec.threads);
  }
  return Error{ErrorCode::bad_model, fmt::format("node \"{}\" ({}) has no {}", spec.name(), spec.type(), attribute)};
}

// ---- If

class IfKernel : public ControlKernel {
 public:
  IfKernel(const KernelSpec& spec, BodyRunner then_body, BodyRunner else_body)
      : ControlKernel(spec), then_(std::move(then_body)), else_(std::move(else_body)) {}
  Result<void> run(KernelArgs& args) override {
    MST_TRY(const bool taken, truth(args.input(0)));
    MST_TRY(std::vector<Tensor> results, (taken ? then_ : else_).run({}, captured(args), args.scratch()));
    if (results.size() != args.output_count()) return bad(name_, fmt::format("the branch gives {} outputs, expected {}", results.size(), args.output_count()));
    for (std::size_t i = 0; i < results.size(); ++i) args.output(i) = std::move(results[i]);
    return {};
  }

 private:
  BodyRunner then_, else_;
};

Result<std::unique_ptr<Kernel>> make_if(const KernelSpec& spec) {
  MST_TRY(BodyRunner then_body, body_of(spec, "then_branch"));
  MST_TRY(BodyRunner else_body, body_of(spec, "else_branch"));
  return std::unique_ptr<Kernel>(std::make_unique<IfKernel>(spec, std::move(then_body), std::move(else_body)));
}

// ---- collecting and slicing along an axis

struct AxisView {
  std::size_t outer = 1;
  std::size_t inner_bytes = 1;
};

AxisView view_of(const Tensor& t, std::size_t axis) {
  AxisView v;
  for (std::size_t i = 0; i < axis; ++i) v.outer *= static_cast<std::size_t>(t.shape()[i]);
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < t.shape().size(); ++i) inner *= static_cast<std::size_t>(t.shape()[i]);
  v.inner_bytes = dtype_bytes(t.dtype(), inner);
  return v;
}

Tensor slice(const Tensor& t, std::size_t axis, std::int64_t index) {
  std::vector<std::int64_t> shape(t.shape().begin(), t.shape().end());
  const auto extent = static_cast<std::size_t>(shape[axis]);
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  Tensor out(t.dtype(), std::move(shape));
  const AxisView v = view_of(t, axis);
  for (std::size_t o = 0; o < v.outer; ++o) {
    std::memcpy(out.mutable_bytes() + o * v.inner_bytes, t.bytes() + (o * extent + static_cast<std::size_t>(index)) * v.inner_bytes, v.inner_bytes);
  }
  return out;
}

// Parts stacked along a new axis; without parts, the shape comes from the body's declared output.
Result<Tensor> stack(const std::string& node, const std::vector<Tensor>& parts, std::int64_t axis, const TensorDesc& element, bool reverse) {
  std::vector<std::int64_t> shape;
  DType dtype = element.dtype;
  if (!parts.empty()) {
    shape.assign(parts[0].shape().begin(), parts[0].shape().end());
    dtype = parts[0].dtype();
  } else if (element.shape) {
    for (const Dim& d : *element.shape) shape.push_back(d.value.value_or(0));
  }
  const std::int64_t rank = static_cast<std::int64_t>(shape.size()) + 1;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return bad(node, fmt::format("scan output axis lies outside rank {}", rank));
  const auto at = static_cast<std::size_t>(axis);
  shape.insert(shape.begin() + axis, static_cast<std::int64_t>(parts.size()));
  if (dtype == DType::undefined) return bad(node, "a scan output of no iteration has no type");
  Tensor out(dtype, shape);
  const AxisView v = view_of(out, at);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Tensor& part = parts[reverse ? parts.size() - 1 - i : i];
    if (!(part.desc() == parts[0].desc())) return bad(node, fmt::format("iterations give {} and {} to one scan output", to_string(parts[0].desc()), to_string(part.desc())));
    for (std::size_t o = 0; o < v.outer; ++o) {
      std::memcpy(out.mutable_bytes() + (o * parts.size() + i) * v.inner_bytes, part.bytes() + o * v.inner_bytes, v.inner_bytes);
    }
  }
  return out;
}

// ---- Loop

class LoopKernel : public ControlKernel {
 public:
  LoopKernel(const KernelSpec& spec, BodyRunner body) : ControlKernel(spec), body_(std::move(body)) {}

  Result<void> run(KernelArgs& args) override {
    const std::size_t carried = own_inputs_ > 2 ? own_inputs_ - 2 : 0;
    const Graph& g = body_.body();
    if (g.inputs().size() != carried + 2 || g.outputs().size() != args.output_count() + 1 || args.output_count() < carried) {
      return bad(name_, fmt::format("{} carried values do not fit a body of {} inputs and {} outputs", carried, g.inputs().size(), g.outputs().size()));
    }
    std::int64_t trips = std::numeric_limits<std::int64_t>::max();
    if (args.has_input(0)) {
      if (args.input(0).dtype() != DType::i64 || args.input(0).elements() != 1) return bad(name_, "the trip count is not one i64");
      trips = args.input(0).as<std::int64_t>()[0];
    }
    bool go_on = true;
    if (own_inputs_ > 1 && args.has_input(1)) {
      MST_TRY(go_on, truth(args.input(1)));
    }
    std::vector<Tensor> state;
    for (std::size_t i = 0; i < carried; ++i) {
      if (!args.has_input(i + 2)) return bad(name_, fmt::format("carried value {} is left out", i));
      state.push_back(args.input(i + 2));
    }
    std::vector<std::vector<Tensor>> scans(args.output_count() - carried);
    const Captured outer = captured(args);
    // Tensors carry their shape from the declared body inputs: scalars, or one element of rank one.
    const auto scalar_shape = [&](std::size_t input) {
      const TensorDesc& d = g.desc(g.inputs()[input]);
      return std::vector<std::int64_t>(d.shape && d.shape->size() == 1 ? 1 : 0, 1);
    };
    for (std::int64_t i = 0; i < trips && go_on; ++i) {
      Tensor iteration(DType::i64, scalar_shape(0));
      iteration.as_mutable<std::int64_t>()[0] = i;
      Tensor condition(DType::boolean, scalar_shape(1));
      condition.as_mutable<std::uint8_t>()[0] = 1;
      std::vector<Tensor> inputs = {std::move(iteration), std::move(condition)};
      inputs.insert(inputs.end(), state.begin(), state.end());
      MST_TRY(std::vector<Tensor> results, body_.run(inputs, outer, args.scratch()));
      MST_TRY(go_on, truth(results[0]));
      for (std::size_t k = 0; k < carried; ++k) state[k] = std::move(results[1 + k]);
      for (std::size_t k = 0; k < scans.size(); ++k) scans[k].push_back(std::move(results[1 + carried + k]));
    }
    for (std::size_t k = 0; k < carried; ++k) args.output(k) = std::move(state[k]);
    for (std::size_t k = 0; k < scans.size(); ++k) {
      MST_TRY(args.output(carried + k), stack(name_, scans[k], 0, g.desc(g.outputs()[1 + carried + k]), false));
    }
    return {};
  }

 private:
  BodyRunner body_;
};

Result<std::unique_ptr<Kernel>> make_loop(const KernelSpec& spec) {
  MST_TRY(BodyRunner body, body_of(spec, "body"));
  return std::unique_ptr<Kernel>(std::make_unique<LoopKernel>(spec, std::move(body)));
}

// ---- Scan, operator set 9 and up

class ScanKernel : public ControlKernel {
 public:
  ScanKernel(const KernelSpec& spec, BodyRunner body, std::size_t scan_inputs)
      : ControlKernel(spec), body_(std::move(body)), scan_inputs_(scan_inputs), input_axes_(spec.attrs().get_ints("scan_input_axes")),
        input_directions_(spec.attrs().get_ints("scan_input_directions")), output_axes_(spec.attrs().get_ints("scan_output_axes")),
        output_directions_(spec.attrs().get_ints("scan_output_directions")) {}

  Result<void> run(KernelArgs& args) override {
    const std::size_t states = own_inputs_ - scan_inputs_;
    const Graph& g = body_.body();
    if (g.inputs().size() != own_inputs_ || g.outputs().size() != args.output_count() || args.output_count() < states) {
      return bad(name_, "the body's inputs or outputs do not fit the node's");
    }
    std::vector<Tensor> state;
    for (std::size_t i = 0; i < states; ++i) state.push_back(args.input(i));
    std::vector<std::size_t> axes;
    std::int64_t length = 0;
    for (std::size_t i = 0; i < scan_inputs_; ++i) {
      const Tensor& t = args.input(states + i);
      const auto rank = static_cast<std::int64_t>(t.shape().size());
      std::int64_t axis = i < input_axes_.size() ? input_axes_[i] : 0;
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return bad(name_, fmt::format("scan input {} of rank {} has no axis {}", i, rank, axis));
      axes.push_back(static_cast<std::size_t>(axis));
      const std::int64_t extent = t.shape()[axes.back()];
      if (i > 0 && extent != length) return bad(name_, fmt::format("scan inputs have lengths {} and {}", length, extent));
      length = extent;
    }
    std::vector<std::vector<Tensor>> scans(args.output_count() - states);
    const Captured outer = captured(args);
    for (std::int64_t i = 0; i < length; ++i) {
      std::vector<Tensor> inputs = state;
      for (std::size_t k = 0; k < scan_inputs_; ++k) {
        const bool reverse = k < input_directions_.size() && input_directions_[k] == 1;
        inputs.push_back(slice(args.input(states + k), axes[k], reverse ? length - 1 - i : i));
      }
      MST_TRY(std::vector<Tensor> results, body_.run(inputs, outer, args.scratch()));
      for (std::size_t k = 0; k < states; ++k) state[k] = std::move(results[k]);
      for (std::size_t k = 0; k < scans.size(); ++k) scans[k].push_back(std::move(results[states + k]));
    }
    for (std::size_t k = 0; k < states; ++k) args.output(k) = std::move(state[k]);
    for (std::size_t k = 0; k < scans.size(); ++k) {
      const std::int64_t axis = k < output_axes_.size() ? output_axes_[k] : 0;
      const bool reverse = k < output_directions_.size() && output_directions_[k] == 1;
      MST_TRY(args.output(states + k), stack(name_, scans[k], axis, g.desc(g.outputs()[states + k]), reverse));
    }
    return {};
  }

 private:
  BodyRunner body_;
  std::size_t scan_inputs_;
  std::vector<std::int64_t> input_axes_, input_directions_, output_axes_, output_directions_;
};

Result<std::unique_ptr<Kernel>> make_scan(const KernelSpec& spec) {
  if (spec.opset() < 9) {
    return Error{ErrorCode::unsupported_operator, fmt::format("node \"{}\": Scan of operator set 8 (with a batch axis) is not supported", spec.name())}.help(
        "convert the model to operator set 9 or later");
  }
  const std::int64_t scan_inputs = spec.attrs().get_int("num_scan_inputs", 0);
  if (scan_inputs < 1 || scan_inputs > static_cast<std::int64_t>(spec.input_count())) {
    return Error{ErrorCode::bad_model, fmt::format("node \"{}\": num_scan_inputs is {} of {} inputs", spec.name(), scan_inputs, spec.input_count())};
  }
  MST_TRY(BodyRunner body, body_of(spec, "body"));
  return std::unique_ptr<Kernel>(std::make_unique<ScanKernel>(spec, std::move(body), static_cast<std::size_t>(scan_inputs)));
}

constexpr KernelEntry kEntries[] = {{"If", make_if}, {"Loop", make_loop}, {"Scan", make_scan}};

}  // namespace

const KernelTable& kernels_with_control_flow() {
  static const KernelTable table = [] {
    KernelTable t = cpu_kernels();
    t.add(kEntries);
    return t;
  }();
  return table;
}

}  // namespace millstream
