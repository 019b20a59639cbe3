// SPDX-License-Identifier: Apache-2.0
// The operator tables, one a family; registry.cpp joins them. A new operator is one row in its
// family.
#pragma once

#include <span>

#include "millstream/ops/op.h"

namespace millstream {

std::span<const OpSchema> table_attention();
std::span<const OpSchema> table_control();
std::span<const OpSchema> table_convolution();
std::span<const OpSchema> table_dumps();
std::span<const OpSchema> table_elementwise();
std::span<const OpSchema> table_generator();
std::span<const OpSchema> table_indexing();
std::span<const OpSchema> table_logic();
std::span<const OpSchema> table_loss();
std::span<const OpSchema> table_matrix();
std::span<const OpSchema> table_movement();
std::span<const OpSchema> table_norm();
std::span<const OpSchema> table_pooling();
std::span<const OpSchema> table_quantize();
std::span<const OpSchema> table_recurrent();
std::span<const OpSchema> table_reduction();
std::span<const OpSchema> table_resize();
std::span<const OpSchema> table_signal();
std::span<const OpSchema> table_window_moves();

using OpTable = std::span<const OpSchema> (*)();
/// Every table of this build.
inline constexpr OpTable kOpTables[] = {
    table_attention, table_control,  table_convolution, table_dumps,        table_elementwise,
    table_generator, table_indexing, table_logic,       table_loss,         table_matrix,
    table_movement,  table_norm,     table_pooling,     table_quantize,     table_recurrent,
    table_reduction, table_resize,   table_signal,      table_window_moves,
};

}  // namespace millstream
