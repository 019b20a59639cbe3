// SPDX-License-Identifier: Apache-2.0
#include "millstream/ops/cost_rules.h"

namespace millstream {
namespace {

double bytes_of(const TensorDesc* desc) {
  const auto bytes = desc == nullptr ? std::nullopt : desc->bytes();
  return bytes ? static_cast<double>(*bytes) : 0.0;
}

}  // namespace

double elements_of(const TensorDesc* desc) {
  const auto n = desc == nullptr ? std::nullopt : desc->elements();
  return n ? static_cast<double>(*n) : 0.0;
}

double traffic(InputDescs inputs, OutputDescs outputs) {
  double bytes = 0;
  for (const TensorDesc* d : inputs) bytes += bytes_of(d);
  for (const TensorDesc* d : outputs) bytes += bytes_of(d);
  return bytes;
}

OpCost variadic_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  const double terms = inputs.size() > 1 ? static_cast<double>(inputs.size() - 1) : 1.0;
  return {terms * (outputs.empty() ? 0.0 : elements_of(outputs[0])), traffic(inputs, outputs)};
}

OpCost move_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  return {0, traffic(inputs, outputs)};
}

OpCost gather_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  const InputDescs rest = inputs.empty() ? inputs : inputs.subspan(1);
  return {0, 2 * traffic({}, outputs) + traffic(rest, {})};
}

OpCost no_cost(const Attrs&, InputDescs, OutputDescs) { return {}; }

}  // namespace millstream
