// SPDX-License-Identifier: Apache-2.0
// Operators that rearrange elements in axis order: reshape, join, split. Cutting and padding:
// window_moves.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;

std::vector<TensorDesc> one(DType dtype, Dims dims) { return {described(dtype, std::move(dims))}; }

Descs transpose(const ShapeContext& c) {
  const Operands in(c);
  const Dims* x = in.dims(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  std::vector<std::int64_t> perm = in.attrs().get_ints("perm");
  if (!in.attrs().has("perm")) {
    for (std::size_t i = x->size(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  }
  const auto wrong = [&] {
    return in.error(fmt::format("perm {} is not a permutation of the {} axes of {}",
                                to_string(perm), x->size(), to_string(*x)));
  };
  if (perm.size() != x->size()) return wrong();
  std::vector<bool> seen(x->size(), false);
  Dims out;
  for (const std::int64_t p : perm) {
    if (p < 0 || p >= std::ssize(*x) || seen[static_cast<std::size_t>(p)]) return wrong();
    seen[static_cast<std::size_t>(p)] = true;
    out.push_back((*x)[static_cast<std::size_t>(p)]);
  }
  return one(in.dtype(0), std::move(out));
}

// A target of 0 copies the input's dimension (unless allowzero, from opset 14), -1 takes what is
// left.
Descs reshape(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "shape", types::kInt64));
  MST_TRY_VOID(in.expect_rank(1, "shape", 1, 1));
  const DType dtype = in.dtype(0);
  const auto target = in.ints(1);
  if (!target) {
    const auto rank = rank_from(in, 1);
    return std::vector<TensorDesc>{rank ? described(dtype, anonymous(*rank)) : unknown(dtype)};
  }
  MST_TRY_VOID(expect_usable_rank(in, target->size()));
  const bool allow_zero = c.opset >= 14 && in.attrs().get_int("allowzero", 0) != 0;
  const Dims* x = in.dims(0);
  const auto mismatch = [&] {
    return in.error(fmt::format("{} does not reshape to {}", x == nullptr ? "input" : to_string(*x),
                                to_string(*target)));
  };
  std::vector<bool> copied(x == nullptr ? 0 : x->size(), false);
  Dims out;
  Dims fresh;  // targets that are not copied
  std::optional<std::size_t> inferred;
  for (std::size_t i = 0; i < target->size(); ++i) {
    const std::int64_t t = (*target)[i];
    if (t == -1) {
      if (inferred) return in.error(fmt::format("shape {} holds -1 twice", to_string(*target)));
      inferred = i;
      out.emplace_back();
    } else if (t == 0 && !allow_zero) {
      if (x == nullptr) {
        out.emplace_back();
      } else if (i >= x->size()) {
        return in.error(fmt::format("shape {} copies axis {} of {}, which has only {}",
                                    to_string(*target), i, to_string(*x), x->size()));
      } else {
        copied[i] = true;
        out.push_back((*x)[i]);
      }
    } else if (t < 0) {
      return in.error(fmt::format("shape {} holds {}", to_string(*target), t));
    } else {
      out.push_back(Dim::of(t));
      fresh.push_back(out.back());
    }
  }
  if (inferred && allow_zero && std::count(target->begin(), target->end(), 0) != 0) {
    return in.error(
        fmt::format("shape {} holds both 0 and -1 with allowzero=1", to_string(*target)));
  }
  if (x == nullptr) return one(dtype, std::move(out));
  // Copied dimensions stand on both sides, so they cancel even when unknown.
  Dims left;
  for (std::size_t i = 0; i < x->size(); ++i) {
    if (!copied[i]) left.push_back((*x)[i]);
  }
  const Dim have = product(left, 0, left.size());
  const Dim want = product(fresh, 0, fresh.size());
  if (!have.known() || !want.known()) {
    // One unknown dimension against one inferred: the symbol survives when the rest is equal.
    if (inferred && want.known() && *want.value > 0) {
      Dims symbols;
      Dims numbers;
      for (const Dim& d : left) (d.known() ? numbers : symbols).push_back(d);
      const Dim rest = product(numbers, 0, numbers.size());
      if (symbols.size() == 1 && rest.known() && *rest.value == *want.value)
        out[*inferred] = symbols[0];
    }
    return one(dtype, std::move(out));
  }
  if (inferred) {
    if (*want.value == 0) {
      // 0 / 0 is not determined; it is only allowed when a copied axis is the empty one.
      if (*have.value != 0) return mismatch();
      return in.error(fmt::format("shape {} infers -1 from an empty tensor", to_string(*target)));
    }
    if (*have.value % *want.value != 0) return mismatch();
    out[*inferred] = Dim::of(*have.value / *want.value);
  } else if (*have.value != *want.value) {
    // An empty copied axis makes both sides empty, whatever the others are.
    Dims copies;
    for (std::size_t i = 0; i < x->size(); ++i) {
      if (copied[i]) copies.push_back((*x)[i]);
    }
    const Dim shared = product(copies, 0, copies.size());
    if (shared.known() && *shared.value != 0) return mismatch();
  }
  return one(dtype, std::move(out));
}

// To a matrix: axes before `axis`, axes from it on.
Descs flatten(const ShapeContext& c) {
  const Operands in(c);
  const Dims* x = in.dims(0);
  if (x == nullptr) return one(in.dtype(0), anonymous(2));
  const auto rank = std::ssize(*x);
  const std::int64_t axis = in.attrs().get_int("axis", 1);
  if (axis < -rank || axis > rank) {
    return in.error(
        fmt::format("axis {} lies outside [{}, {}] of rank {}", axis, -rank, rank, rank));
  }
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  return one(in.dtype(0), Dims{product(*x, 0, at), product(*x, at, x->size())});
}

Descs squeeze(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY(const IntList axes, int_list(in, "axes", 1, 13));
  const Dims* x = in.dims(0);
  const DType dtype = in.dtype(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(dtype)};
  Dims out;
  if (!axes.given) {
    for (const Dim& d : *x) {
      if (!d.known()) return std::vector<TensorDesc>{unknown(dtype)};
      if (*d.value != 1) out.push_back(d);
    }
    return one(dtype, std::move(out));
  }
  if (!axes.values) {
    if (!axes.count || *axes.count > x->size()) return std::vector<TensorDesc>{unknown(dtype)};
    return one(dtype, anonymous(x->size() - *axes.count));
  }
  MST_TRY(const std::vector<std::size_t> list, sorted_axes(in, *axes.values, x->size()));
  for (std::size_t i = 0; i < x->size(); ++i) {
    if (!std::binary_search(list.begin(), list.end(), i)) {
      out.push_back((*x)[i]);
    } else if ((*x)[i].known() && *(*x)[i].value != 1) {
      return in.error(
          fmt::format("axis {} of {} has length {}, expected 1", i, to_string(*x), *(*x)[i].value));
    }
  }
  return one(dtype, std::move(out));
}

Descs unsqueeze(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY(const IntList axes, int_list(in, "axes", 1, 13));
  if (!axes.given) return in.error("has no axes");
  const Dims* x = in.dims(0);
  const DType dtype = in.dtype(0);
  if (x == nullptr) return std::vector<TensorDesc>{unknown(dtype)};
  if (!axes.values) {
    if (!axes.count || *axes.count > kMostAxes) return std::vector<TensorDesc>{unknown(dtype)};
    return one(dtype, anonymous(x->size() + *axes.count));
  }
  const std::size_t rank = x->size() + axes.values->size();
  MST_TRY_VOID(expect_usable_rank(in, rank));
  MST_TRY(const std::vector<std::size_t> list, sorted_axes(in, *axes.values, rank));
  Dims out;
  auto next = x->begin();
  for (std::size_t i = 0; i < rank; ++i) {
    out.push_back(std::binary_search(list.begin(), list.end(), i) ? Dim::of(1) : *next++);
  }
  return one(dtype, std::move(out));
}

Descs concat(const ShapeContext& c) {
  const Operands in(c);
  if (!in.attrs().has("axis")) return in.error("has no axis");
  DType dtype = DType::undefined;
  std::optional<std::size_t> rank;
  bool complete = true;
  for (std::size_t i = 0; i < in.count(); ++i) {
    MST_TRY(const DType both, in.common_dtype({0, i}));
    if (both != DType::undefined) dtype = both;
    const Dims* d = in.dims(i);
    if (d == nullptr) {
      complete = false;
      continue;
    }
    if (rank && *rank != d->size()) {
      return in.error(
          fmt::format("input {} has rank {}, expected {} like the others", i, d->size(), *rank));
    }
    rank = d->size();
  }
  if (!rank) return std::vector<TensorDesc>{unknown(dtype)};
  if (*rank == 0) return in.error("joins scalars, expected rank 1 or more");
  MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", 0), *rank));
  Dims out(*rank);
  Dim length = complete ? Dim::of(0) : Dim{};
  for (std::size_t i = 0; i < in.count(); ++i) {
    const Dims* d = in.dims(i);
    if (d == nullptr) continue;
    for (std::size_t k = 0; k < *rank; ++k) {
      if (k == axis) {
        length = plus(length, (*d)[k]);
      } else {
        MST_TRY(out[k], in.same(out[k], (*d)[k],
                                fmt::format("axis {} of input {} {}", k, i, to_string(*d))));
      }
    }
  }
  out[axis] = std::move(length);
  return one(dtype, std::move(out));
}

// Parts are listed (attribute "split" below opset 13, input from there), or equal. From opset 18 an
// uneven division leaves the last part shorter.
Descs split(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY(const IntList parts, int_list(in, "split", 1, 13));
  const std::size_t n = c.output_count;
  const std::int64_t wanted = in.attrs().get_int("num_outputs", static_cast<std::int64_t>(n));
  if (c.opset >= 18 && in.attrs().has("num_outputs") && parts.given) {
    return in.error("has both a split input and num_outputs, expected one");
  }
  if (wanted != static_cast<std::int64_t>(n)) {
    return in.error(fmt::format("num_outputs is {}, but there are {} outputs", wanted, n));
  }
  if (parts.count && *parts.count != n) {
    return in.error(fmt::format("split lists {} parts for {} outputs", *parts.count, n));
  }
  std::vector<TensorDesc> out(n, in.desc(0));
  const Dims* x = in.dims(0);
  if (x == nullptr) return out;
  if (x->empty()) return in.error("splits a scalar");
  MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", 0), x->size()));
  const Dim whole = (*x)[axis];
  for (TensorDesc& d : out) (*d.shape)[axis] = Dim{};
  if (parts.given) {
    if (!parts.values) return out;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t part = (*parts.values)[i];
      if (part < 0 || part > (std::int64_t{1} << 48)) {
        return in.error(fmt::format("split {} holds {}", to_string(*parts.values), part));
      }
      sum += part;
      (*out[i].shape)[axis] = Dim::of(part);
    }
    if (whole.known() && sum != *whole.value) {
      return in.error(fmt::format("split {} adds up to {}, expected {} (axis {} of {})",
                                  to_string(*parts.values), sum, *whole.value, axis,
                                  to_string(*x)));
    }
    return out;
  }
  if (!whole.known() || n == 0) {
    if (n == 1) (*out[0].shape)[axis] = whole;
    return out;
  }
  const auto count = static_cast<std::int64_t>(n);
  const std::int64_t part = *whole.value / count + (*whole.value % count != 0 ? 1 : 0);
  const std::int64_t last = *whole.value - part * (count - 1);
  if (last < 0 || (c.opset < 18 && last != part)) {
    return in.error(fmt::format("length {} (axis {} of {}) does not divide into {} parts",
                                *whole.value, axis, to_string(*x), n));
  }
  for (std::size_t i = 0; i < n; ++i) (*out[i].shape)[axis] = Dim::of(i + 1 == n ? last : part);
  return out;
}

Descs tile(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "repeats", types::kInt64));
  MST_TRY_VOID(in.expect_rank(1, "repeats", 1, 1));
  const Dims* x = in.dims(0);
  const auto repeats = in.ints(1);
  if (repeats) MST_TRY_VOID(expect_usable_rank(in, repeats->size()));
  if (x == nullptr) {
    return std::vector<TensorDesc>{repeats ? described(in.dtype(0), anonymous(repeats->size()))
                                           : unknown(in.dtype(0))};
  }
  if (!repeats) return one(in.dtype(0), anonymous(x->size()));
  if (repeats->size() != x->size()) {
    return in.error(fmt::format("repeats {} has {} entries, expected {} for {}",
                                to_string(*repeats), repeats->size(), x->size(), to_string(*x)));
  }
  Dims out;
  for (std::size_t i = 0; i < x->size(); ++i) {
    if ((*repeats)[i] < 0)
      return in.error(fmt::format("repeats {} is negative", to_string(*repeats)));
    out.push_back(times((*x)[i], Dim::of((*repeats)[i])));
  }
  return one(in.dtype(0), std::move(out));
}

// Both-sided broadcast of the input with the wanted shape.
Descs expand(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(1, "shape", types::kInt64));
  MST_TRY_VOID(in.expect_rank(1, "shape", 1, 1));
  const Dims* x = in.dims(0);
  const auto shape = in.ints(1);
  if (!shape) {
    const auto rank = rank_from(in, 1);
    if (x == nullptr || !rank) return std::vector<TensorDesc>{unknown(in.dtype(0))};
    return one(in.dtype(0), anonymous(std::max(x->size(), *rank)));
  }
  MST_TRY_VOID(expect_usable_rank(in, shape->size()));
  Dims wanted;
  for (const std::int64_t n : *shape) {
    if (n < 0) return in.error(fmt::format("shape {} is negative", to_string(*shape)));
    wanted.push_back(Dim::of(n));
  }
  if (x == nullptr) return std::vector<TensorDesc>{unknown(in.dtype(0))};
  MST_TRY(Dims out, broadcast(in, *x, wanted));
  return one(in.dtype(0), std::move(out));
}

// [N, C, H, W] -> [N, C / b^2, H * b, W * b].
Descs depth_to_space(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_rank(0, "input", 4, 4));
  const std::int64_t b = in.attrs().get_int("blocksize", 0);
  if (b < 1 || b > 1 << 20) return in.error(fmt::format("blocksize is {}, expected at least 1", b));
  const std::string mode = in.attrs().get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return in.error(fmt::format("mode is \"{}\", expected DCR or CRD", mode));
  const Dims* x = in.dims(0);
  if (x == nullptr) return one(in.dtype(0), anonymous(4));
  const Dim& depth = (*x)[1];
  if (depth.known() && *depth.value % (b * b) != 0) {
    return in.error(
        fmt::format("{} channels do not divide by blocksize {} squared", *depth.value, b));
  }
  return one(in.dtype(0), Dims{(*x)[0], depth.known() ? Dim::of(*depth.value / (b * b)) : Dim{},
                               times((*x)[2], Dim::of(b)), times((*x)[3], Dim::of(b))});
}

Descs space_to_depth(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_rank(0, "input", 4, 4));
  const std::int64_t b = in.attrs().get_int("blocksize", 0);
  if (b < 1 || b > 1 << 20) return in.error(fmt::format("blocksize is {}, expected at least 1", b));
  const Dims* x = in.dims(0);
  if (x == nullptr) return one(in.dtype(0), anonymous(4));
  Dims out{(*x)[0], times((*x)[1], Dim::of(b * b)), Dim{}, Dim{}};
  for (std::size_t i = 2; i < 4; ++i) {
    if (!(*x)[i].known()) continue;
    if (*(*x)[i].value % b != 0) {
      return in.error(
          fmt::format("axis {} of {} does not divide by blocksize {}", i, to_string(*x), b));
    }
    out[i] = Dim::of(*(*x)[i].value / b);
  }
  return one(in.dtype(0), std::move(out));
}

constexpr OpSchema kTable[] = {
    {"Concat", "", 6, 23, 1, kVariadic, concat, move_cost},
    {"DepthToSpace", "", 6, 23, 1, 1, depth_to_space, move_cost},
    {"Expand", "", 8, 23, 2, 2, expand, move_cost},
    {"Flatten", "", 6, 23, 1, 1, flatten, no_cost, /*view=*/true},
    {"Reshape", "", 6, 23, 2, 2, reshape, no_cost, /*view=*/true},
    {"SpaceToDepth", "", 6, 23, 1, 1, space_to_depth, move_cost},
    {"Split", "", 6, 23, 1, 2, split, move_cost},
    {"Squeeze", "", 6, 23, 1, 2, squeeze, no_cost, /*view=*/true},
    {"Tile", "", 6, 23, 2, 2, tile, move_cost},
    {"Transpose", "", 6, 23, 1, 1, transpose, move_cost},
    {"Unsqueeze", "", 6, 23, 1, 2, unsqueeze, no_cost, /*view=*/true},
};

}  // namespace

std::span<const OpSchema> table_movement() { return kTable; }

}  // namespace millstream
