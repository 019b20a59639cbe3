// SPDX-License-Identifier: Apache-2.0
// Einsum: operands are contracted from the left, two at a time, keeping the labels that a later operand
// or the output reads.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "millstream/kernels/function_kernel.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

/// A letter, or kEllipsis + distance from the right end of the dimensions an ellipsis stands for.
using Label = int;
constexpr Label kEllipsis = 256;

struct Term {
  std::string before;  ///< letters before the ellipsis, or all
  bool ellipsis = false;
  std::string after;

  /// The label of each dimension of an operand of this rank; nullopt when the rank does not fit.
  std::optional<std::vector<Label>> labels(std::size_t rank) const {
    const std::size_t named = before.size() + after.size();
    if (rank < named || (!ellipsis && rank != named)) return std::nullopt;
    std::vector<Label> out(before.begin(), before.end());
    for (std::size_t left = rank - named; left-- > 0;) out.push_back(kEllipsis + static_cast<Label>(left));
    out.insert(out.end(), after.begin(), after.end());
    return out;
  }
};

struct Equation {
  std::vector<Term> inputs;
  std::optional<Term> output;
};

std::optional<Term> parse_term(std::string_view text) {
  Term term;
  const std::size_t dots = text.find("...");
  term.before = std::string(text.substr(0, dots));
  if (dots != std::string_view::npos) {
    term.ellipsis = true;
    term.after = std::string(text.substr(dots + 3));
  }
  for (const std::string* part : {&term.before, &term.after}) {
    for (const char c : *part) {
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return std::nullopt;
    }
  }
  return term;
}

std::optional<Equation> parse_equation(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  Equation equation;
  const std::size_t arrow = text.find("->");
  if (arrow != std::string::npos) {
    equation.output = parse_term(std::string_view(text).substr(arrow + 2));
    if (!equation.output) return std::nullopt;
  }
  std::string_view left = std::string_view(text).substr(0, arrow);
  while (true) {
    const std::size_t comma = left.find(',');
    const std::optional<Term> term = parse_term(left.substr(0, comma));
    if (!term) return std::nullopt;
    equation.inputs.push_back(*term);
    if (comma == std::string_view::npos) return equation;
    left = left.substr(comma + 1);
  }
}

template <class T>
struct Operand {
  std::vector<Label> labels;
  Dims dims;
  const T* data = nullptr;
  std::vector<T> own;

  /// Step in elements when the label advances by one; 0 when absent or broadcast.
  std::int64_t step(Label label) const {
    const Dims strides = strides_of(dims);
    std::int64_t step = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (labels[d] == label && dims[d] != 1) step += strides[d];
    }
    return step;
  }
};

/// out[labels] = sum over the other labels of a * b. O(product of all extents).
template <class T>
Operand<T> contract(const Operand<T>& a, const Operand<T>* b, const std::vector<Label>& keep,
                    const std::map<Label, std::int64_t>& extents) {
  std::vector<Label> summed;
  for (const Operand<T>* operand : {&a, b}) {
    if (operand == nullptr) continue;
    for (const Label label : operand->labels) {
      if (std::find(keep.begin(), keep.end(), label) == keep.end() &&
          std::find(summed.begin(), summed.end(), label) == summed.end()) {
        summed.push_back(label);
      }
    }
  }
  struct Axis {
    std::int64_t extent, a, b;
  };
  const auto axes_of = [&](const std::vector<Label>& labels) {
    std::vector<Axis> axes;
    for (const Label label : labels) {
      axes.push_back({extents.at(label), a.step(label), b == nullptr ? 0 : b->step(label)});
    }
    return axes;
  };
  const std::vector<Axis> outer = axes_of(keep), inner = axes_of(summed);
  Operand<T> out;
  out.labels = keep;
  for (const Axis& axis : outer) out.dims.push_back(axis.extent);
  out.own.assign(static_cast<std::size_t>(count_of(out.dims)), T{});
  std::int64_t terms = 1;
  for (const Axis& axis : inner) terms *= axis.extent;

  const auto advance = [](const std::vector<Axis>& axes, Dims& at, std::int64_t& x, std::int64_t& y) {
    for (std::size_t d = axes.size(); d-- > 0;) {
      x += axes[d].a, y += axes[d].b;
      if (++at[d] < axes[d].extent) return;
      x -= axes[d].a * axes[d].extent, y -= axes[d].b * axes[d].extent;
      at[d] = 0;
    }
  };
  Dims at(outer.size(), 0), inside(inner.size(), 0);
  std::int64_t x = 0, y = 0;
  for (T& cell : out.own) {
    T sum{};
    std::int64_t ix = x, iy = y;
    for (std::int64_t t = 0; t < terms; ++t) {
      sum += b == nullptr ? a.data[ix] : a.data[ix] * b->data[iy];
      advance(inner, inside, ix, iy);
    }
    cell = sum;
    advance(outer, at, x, y);
  }
  out.data = out.own.data();
  return out;
}

template <class T, class Read>
Result<void> run_einsum(std::string_view node, const Equation& equation, KernelArgs& args, Read read, T* to) {
  if (args.input_count() != equation.inputs.size()) {
    return kernel_failed(node, fmt::format("equation has {} terms for {} inputs", equation.inputs.size(),
                                           args.input_count()));
  }
  std::vector<std::vector<Label>> labels;
  std::map<Label, std::int64_t> extents;
  std::map<Label, int> uses;
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    const auto shape = args.input(i).shape();
    const auto named = equation.inputs[i].labels(shape.size());
    if (!named) return kernel_failed(node, fmt::format("term {} does not fit an input of rank {}", i, shape.size()));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t& extent = extents.emplace((*named)[d], shape[d]).first->second;
      if (extent == 1) extent = shape[d];
      if (shape[d] != extent && shape[d] != 1) {
        return kernel_failed(node, fmt::format("a label has extents {} and {}", extent, shape[d]));
      }
      ++uses[(*named)[d]];
    }
    labels.push_back(*named);
  }
  std::vector<Label> result;
  std::vector<Label> ellipsis;
  for (const auto& [label, extent] : extents) {
    if (label >= kEllipsis) ellipsis.insert(ellipsis.begin(), label);
  }
  if (equation.output) {
    result.assign(equation.output->before.begin(), equation.output->before.end());
    if (equation.output->ellipsis) result.insert(result.end(), ellipsis.begin(), ellipsis.end());
    result.insert(result.end(), equation.output->after.begin(), equation.output->after.end());
  } else {
    result = ellipsis;
    for (const auto& [label, count] : uses) {
      if (label < kEllipsis && count == 1) result.push_back(label);
    }
  }
  std::int64_t cells = 1;
  for (const Label label : result) {
    if (extents.count(label) == 0) return kernel_failed(node, "the output has a label that no input has");
    cells *= extents.at(label);
  }
  if (cells != args.output(0).elements()) return kernel_failed(node, "output shape does not follow from the equation");

  const auto operand = [&](std::size_t i) {
    Operand<T> out;
    out.labels = labels[i];
    out.dims = dims_of(args.input(i));
    out.data = read(i);
    return out;
  };
  const auto kept_after = [&](std::size_t last, const std::vector<const std::vector<Label>*>& held) {
    if (last + 1 == labels.size()) return result;
    std::vector<Label> keep;
    for (const std::vector<Label>* list : held) {
      for (const Label label : *list) {
        bool wanted = std::find(result.begin(), result.end(), label) != result.end();
        for (std::size_t i = last + 1; i < labels.size(); ++i) {
          wanted = wanted || std::find(labels[i].begin(), labels[i].end(), label) != labels[i].end();
        }
        if (wanted && std::find(keep.begin(), keep.end(), label) == keep.end()) keep.push_back(label);
      }
    }
    return keep;
  };
  Operand<T> current = operand(0);
  if (labels.size() == 1) current = contract<T>(current, nullptr, result, extents);
  for (std::size_t i = 1; i < labels.size(); ++i) {
    const Operand<T> next = operand(i);
    Operand<T> made = contract<T>(current, &next, kept_after(i, {&current.labels, &next.labels}), extents);
    current = std::move(made);
    current.data = current.own.data();
  }
  std::copy_n(current.data, cells, to);
  return {};
}

template <class T>
Result<void> run_integers(std::string_view node, const Equation& equation, KernelArgs& args) {
  return run_einsum<T>(node, equation, args, [&](std::size_t i) { return args.input(i).template as<T>().data(); },
                       args.output(0).template as_mutable<T>().data());
}

Result<std::unique_ptr<Kernel>> make_einsum(const KernelSpec& spec) {
  const std::string text = spec.attrs().get_string("equation", "");
  std::optional<Equation> equation = parse_equation(text);
  if (!equation) return unsupported_node(spec, fmt::format("equation \"{}\"", text));
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type) && type != DType::i32 && type != DType::i64 && type != DType::u32 && type != DType::u64) {
    return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  }
  return make_function_kernel([node = std::string(spec.name()), equation = *std::move(equation)](
                                  KernelArgs& args) -> Result<void> {
    for (std::size_t i = 0; i < args.input_count(); ++i) {
      if (!args.has_input(i)) return kernel_failed(node, "an input is left out");
      if (args.input(i).dtype() != args.input(0).dtype()) return kernel_failed(node, "element types differ");
    }
    switch (args.input(0).dtype()) {
      case DType::i32:
      case DType::u32: return run_integers<std::uint32_t>(node, equation, args);
      case DType::i64:
      case DType::u64: return run_integers<std::uint64_t>(node, equation, args);
      default: break;
    }
    return with_real(args.input(0).dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::vector<std::unique_ptr<RealIn<T>>> inputs;
      for (std::size_t i = 0; i < args.input_count(); ++i) inputs.push_back(std::make_unique<RealIn<T>>(args.input(i)));
      RealOut<T> out(args.output(0));
      return run_einsum<T>(node, equation, args, [&](std::size_t i) { return inputs[i]->data(); }, out.data());
    });
  });
}

constexpr KernelEntry kEntries[] = {{"Einsum", make_einsum}};

}  // namespace

std::span<const KernelEntry> kernels_einsum() { return kEntries; }

}  // namespace millstream
