// SPDX-License-Identifier: Apache-2.0
#include "millstream/dump/node_row.h"

#include <array>

namespace millstream::dump {
namespace {

struct TypeName {
  DType type;
  std::string_view name;
  int number;
};

constexpr TypeName kTypeNames[] = {
    {DType::undefined, "DT_UNDEFINED", 0},  {DType::f32, "DT_FLOAT", 1},       {DType::f16, "DT_FLOAT16", 2},
    {DType::i8, "DT_INT8", 3},              {DType::u8, "DT_UINT8", 4},        {DType::i16, "DT_INT16", 5},
    {DType::u16, "DT_UINT16", 6},           {DType::i32, "DT_INT32", 7},       {DType::i64, "DT_INT64", 8},
    {DType::u32, "DT_UINT32", 9},           {DType::u64, "DT_UINT64", 10},     {DType::boolean, "DT_BOOL", 11},
    {DType::f64, "DT_DOUBLE", 12},          {DType::string, "DT_STRING", 13},  {DType::c64, "DT_COMPLEX64", 16},
    {DType::c128, "DT_COMPLEX128", 17},     {DType::bf16, "DT_BF16", 27},      {DType::i4, "DT_INT4", 28},
    {DType::i2, "DT_INT2", 30},             {DType::u2, "DT_UINT2", 31}};

}  // namespace

std::string_view dt_name(DType type) {
  for (const TypeName& row : kTypeNames) {
    if (row.type == type) return row.name;
  }
  return "DT_UNDEFINED";
}

DType dt_from_name(std::string_view name) {
  for (const TypeName& row : kTypeNames) {
    if (row.name == name) return row.type;
  }
  return DType::undefined;
}

int dt_number(DType type) {
  for (const TypeName& row : kTypeNames) {
    if (row.type == type) return row.number;
  }
  return 0;
}

TensorDesc to_desc(const DescRow& row) {
  TensorDesc desc;
  desc.dtype = row.dtype;
  if (!row.has_shape || (row.dims.size() == 1 && row.dims[0] == -2)) return desc;
  desc.shape.emplace();
  for (const std::int64_t d : row.dims) desc.shape->push_back(d < 0 ? Dim{} : Dim::of(d));
  return desc;
}

DescRow to_row(const TensorDesc& desc) {
  DescRow row;
  row.dtype = dt_from_name(dt_name(desc.dtype));
  row.has_shape = true;
  if (!desc.shape) {
    row.dims.push_back(-2);
  } else {
    for (const Dim& d : *desc.shape) row.dims.push_back(d.value.value_or(-1));
  }
  return row;
}

bool is_send(std::string_view type) { return type == "Send" || type == "SendNotify" || type == "NotifyRecord"; }
bool is_recv(std::string_view type) { return type == "Recv" || type == "RecvNotify" || type == "NotifyWait"; }

}  // namespace millstream::dump
