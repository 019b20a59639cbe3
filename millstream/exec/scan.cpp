// SPDX-License-Identifier: Apache-2.0
// Scan since opset 9, and the joining of turns that Loop needs too.
#include <cstring>

#include <fmt/format.h>

#include "millstream/exec/body_program.h"
#include "millstream/exec/control_flow.h"

namespace millstream {
namespace {

Error failed(std::string_view node, std::string_view what) {
  return Error{ErrorCode::kernel, fmt::format("node \"{}\": {}", node, what)};
}

std::int64_t product(std::span<const std::int64_t> dims) {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) n *= d;
  return n;
}

class ScanKernel final : public Kernel {
 public:
  ScanKernel(const KernelSpec& spec, std::unique_ptr<BodyProgram> body)
      : name_(spec.name()),
        body_(std::move(body)),
        scanned_(static_cast<std::size_t>(spec.attrs().get_int("num_scan_inputs", 1))),
        states_(spec.input_count() - scanned_),
        in_axes_(spec.attrs().get_ints("scan_input_axes")),
        in_backwards_(spec.attrs().get_ints("scan_input_directions")),
        out_axes_(spec.attrs().get_ints("scan_output_axes")),
        out_backwards_(spec.attrs().get_ints("scan_output_directions")) {}

  Result<void> run(KernelArgs& args) override {
    std::vector<std::size_t> axes;
    std::int64_t turns = 0;
    for (std::size_t k = 0; k < scanned_; ++k) {
      const Tensor& t = args.input(states_ + k);
      MST_TRY(const std::size_t axis, scan_axis(t, at(in_axes_, k), k, name_));
      axes.push_back(axis);
      const std::int64_t length = t.shape()[axes[k]];
      if (k > 0 && length != turns) return failed(name_, fmt::format("scan inputs are {} and {} long", turns, length));
      turns = length;
    }
    std::vector<Tensor> state;
    for (std::size_t i = 0; i < states_; ++i) state.push_back(args.input(i));
    std::vector<std::vector<Tensor>> parts(args.output_count() - states_);
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      std::vector<Tensor> in = std::move(state);
      for (std::size_t k = 0; k < scanned_; ++k) {
        in.push_back(row_of(args.input(states_ + k), axes[k], at(in_backwards_, k) == 1 ? turns - 1 - turn : turn));
      }
      MST_TRY(std::vector<Tensor> out, body_->run(std::move(in), args));
      state.assign(std::make_move_iterator(out.begin()), std::make_move_iterator(out.begin() + static_cast<std::ptrdiff_t>(states_)));
      for (std::size_t k = 0; k < parts.size(); ++k) parts[k].push_back(std::move(out[states_ + k]));
    }
    for (std::size_t i = 0; i < states_; ++i) args.output(i) = std::move(state[i]);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const TensorDesc& desc = body_->graph().desc(body_->graph().outputs()[states_ + k]);
      MST_TRY(args.output(states_ + k), stack(parts[k], desc, at(out_axes_, k), at(out_backwards_, k) == 1, name_));
    }
    return {};
  }

 private:
  static std::int64_t at(const std::vector<std::int64_t>& list, std::size_t k) { return k < list.size() ? list[k] : 0; }

  std::string name_;
  std::unique_ptr<BodyProgram> body_;
  std::size_t scanned_, states_;
  std::vector<std::int64_t> in_axes_, in_backwards_, out_axes_, out_backwards_;
};

}  // namespace

Tensor row_of(const Tensor& from, std::size_t axis, std::int64_t index) {
  const auto dims = from.shape();
  std::vector<std::int64_t> shape(dims.begin(), dims.end());
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  Tensor out(from.dtype(), std::move(shape));
  const auto outer = static_cast<std::size_t>(product(dims.first(axis)));
  const std::size_t inner = static_cast<std::size_t>(product(dims.subspan(axis + 1))) * dtype_bits(from.dtype()) / 8;
  const std::size_t stride = inner * static_cast<std::size_t>(dims[axis]);
  for (std::size_t o = 0; o < outer && inner != 0; ++o) {
    std::memcpy(out.mutable_bytes() + o * inner, from.bytes() + o * stride + static_cast<std::size_t>(index) * inner, inner);
  }
  return out;
}

Result<std::size_t> scan_axis(const Tensor& t, std::int64_t axis, std::size_t k, std::string_view node) {
  const auto rank = static_cast<std::int64_t>(t.shape().size());
  const std::int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) return failed(node, fmt::format("scan input {} is {}, which has no axis {}", k, to_string(t.desc()), axis));
  if (dtype_bits(t.dtype()) % 8 != 0) return failed(node, fmt::format("cannot scan {}", to_string(t.desc())));
  return static_cast<std::size_t>(at);
}

Result<Tensor> stack(std::span<const Tensor> parts, const TensorDesc& desc, std::int64_t axis, bool backwards,
                     std::string_view node) {
  std::vector<std::int64_t> part;
  DType type = desc.dtype;
  if (parts.empty()) {
    if (type == DType::undefined) return failed(node, "made no turn, and the element type of a stacked output is not known");
    if (desc.shape) {
      for (const Dim& d : *desc.shape) part.push_back(d.value.value_or(0));
    }
  } else {
    part.assign(parts[0].shape().begin(), parts[0].shape().end());
    type = parts[0].dtype();
    for (const Tensor& t : parts) {
      if (t.dtype() == type && std::equal(t.shape().begin(), t.shape().end(), part.begin(), part.end())) continue;
      return failed(node, fmt::format("a stacked output is {} in one turn and {} in another", to_string(parts[0].desc()), to_string(t.desc())));
    }
  }
  if (dtype_bits(type) % 8 != 0) return failed(node, fmt::format("cannot stack {}", dtype_name(type)));
  const auto rank = static_cast<std::int64_t>(part.size()) + 1;
  const std::int64_t place = axis < 0 ? axis + rank : axis;
  if (place < 0 || place >= rank) return failed(node, fmt::format("a stacked output of rank {} has no axis {}", rank, axis));
  const auto cut = static_cast<std::size_t>(place);
  const auto outer = static_cast<std::size_t>(product(std::span(part).first(cut)));
  const std::size_t inner = static_cast<std::size_t>(product(std::span(part).subspan(cut))) * dtype_bits(type) / 8;
  std::vector<std::int64_t> shape = part;
  shape.insert(shape.begin() + place, static_cast<std::int64_t>(parts.size()));
  Tensor out(type, std::move(shape));
  for (std::size_t i = 0; i < parts.size() && inner != 0; ++i) {
    const std::size_t row = backwards ? parts.size() - 1 - i : i;
    for (std::size_t o = 0; o < outer; ++o) {
      std::memcpy(out.mutable_bytes() + (o * parts.size() + row) * inner, parts[i].bytes() + o * inner, inner);
    }
  }
  return out;
}

Result<std::unique_ptr<Kernel>> make_scan(const KernelSpec& spec) {
  MST_TRY(auto body, BodyProgram::make(spec, "body"));
  const Graph& g = body->graph();
  const std::int64_t scanned = spec.attrs().get_int("num_scan_inputs", 0);
  const std::size_t inputs = spec.input_count(), outputs = spec.graph.outputs(spec.node).size();
  if (scanned < 1 || static_cast<std::size_t>(scanned) > inputs || g.inputs().size() != inputs || g.outputs().size() != outputs ||
      outputs < inputs - static_cast<std::size_t>(scanned)) {
    return Error{ErrorCode::control_flow, fmt::format("Scan \"{}\" has {} inputs, {} of them scanned, and {} outputs, its body {} and {}",
                                                      spec.name(), inputs, scanned, outputs, g.inputs().size(), g.outputs().size())};
  }
  return std::unique_ptr<Kernel>(std::make_unique<ScanKernel>(spec, std::move(body)));
}

}  // namespace millstream
