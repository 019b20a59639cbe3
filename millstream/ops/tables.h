// SPDX-License-Identifier: Apache-2.0
// The operator tables, one a family; registry.cpp joins them. A new operator is one row in its family.
#pragma once

#include <span>

#include "millstream/ops/op.h"

namespace millstream {

std::span<const OpSchema> table_elementwise();
std::span<const OpSchema> table_logic();
std::span<const OpSchema> table_matrix();
std::span<const OpSchema> table_convolution();
std::span<const OpSchema> table_pooling();
std::span<const OpSchema> table_norm();
std::span<const OpSchema> table_reduction();
std::span<const OpSchema> table_movement();
std::span<const OpSchema> table_window_moves();
std::span<const OpSchema> table_indexing();
std::span<const OpSchema> table_generator();

using OpTable = std::span<const OpSchema> (*)();
/// Every table of this build.
inline constexpr OpTable kOpTables[] = {
    table_elementwise, table_logic,    table_matrix,     table_convolution, table_pooling, table_norm,
    table_reduction,   table_movement, table_window_moves, table_indexing, table_generator,
};

}  // namespace millstream
