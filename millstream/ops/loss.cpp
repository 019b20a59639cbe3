// SPDX-License-Identifier: Apache-2.0
// Losses.
#include <fmt/format.h>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

// Scores [N, C, d..], targets [N, d..], weights [C]: the targets' shape, or a scalar when reduced.
Descs loss_of(const Operands& in) {
  MST_TRY_VOID(in.expect_types(0, "scores", types::kFloat));
  MST_TRY_VOID(in.expect_types(1, "targets", types::kIndex));
  MST_TRY(const DType dtype, in.common_dtype({0, 2}));
  MST_TRY_VOID(in.expect_rank(0, "scores", 2, OpSchema::kVariadic));
  MST_TRY_VOID(in.expect_rank(2, "weights", 1, 1));
  const std::string reduction = in.attrs().get_string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    return in.error(fmt::format("reduction is \"{}\", expected none, sum or mean", reduction));
  }
  TensorDesc targets = unknown(dtype);
  if (const Dims* scores = in.dims(0)) {
    targets.shape = *scores;
    targets.shape->erase(targets.shape->begin() + 1);
    if (in.dims(2) != nullptr)
      MST_TRY_VOID(in.same((*in.dims(2))[0], (*scores)[1], "length of weights and classes"));
    MST_TRY_VOID(in.expect_rank(1, "targets", scores->size() - 1, scores->size() - 1));
    if (const Dims* d = in.dims(1)) {
      for (std::size_t i = 0; i < d->size(); ++i) {
        MST_TRY((*targets.shape)[i], in.same((*targets.shape)[i], (*d)[i],
                                             fmt::format("axis {} of targets and scores", i)));
      }
    }
  } else if (const Dims* d = in.dims(1)) {
    targets.shape = *d;
  }
  return std::vector<TensorDesc>{reduction == "none" ? targets : TensorDesc::of(dtype, {})};
}

Descs negative_log_likelihood(const ShapeContext& c) { return loss_of(Operands(c)); }

// The second output holds the logarithms of the softmax.
Descs softmax_cross_entropy(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY(std::vector<TensorDesc> out, loss_of(in));
  if (c.output_count > 1) out.push_back(in.desc(0));
  return out;
}

constexpr OpSchema kTable[] = {
    {"NegativeLogLikelihoodLoss", "", 12, 23, 2, 3, negative_log_likelihood, per_input_cost<1>},
    {"SoftmaxCrossEntropyLoss", "", 12, 23, 2, 3, softmax_cross_entropy, per_input_cost<10>},
};

}  // namespace

std::span<const OpSchema> table_loss() { return kTable; }

}  // namespace millstream
