// SPDX-License-Identifier: Apache-2.0
#include "millstream/graph/attrs.h"

#include <algorithm>

namespace millstream {
namespace {

template <class T>
T read(const Attr* attr, T otherwise) {
  if (attr == nullptr) return otherwise;
  const T* value = std::get_if<T>(attr);
  return value != nullptr ? *value : otherwise;
}

}  // namespace

void Attrs::set(std::string name, Attr value) {
  auto it = std::lower_bound(items_.begin(), items_.end(), name,
                             [](const auto& item, const std::string& key) { return item.first < key; });
  if (it != items_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    items_.insert(it, {std::move(name), std::move(value)});
  }
}

const Attr* Attrs::find(std::string_view name) const {
  auto it = std::lower_bound(items_.begin(), items_.end(), name,
                             [](const auto& item, std::string_view key) { return item.first < key; });
  return it != items_.end() && it->first == name ? &it->second : nullptr;
}

std::int64_t Attrs::get_int(std::string_view name, std::int64_t otherwise) const {
  return read(find(name), otherwise);
}
float Attrs::get_float(std::string_view name, float otherwise) const {
  return read(find(name), otherwise);
}
std::string Attrs::get_string(std::string_view name, std::string_view otherwise) const {
  return read(find(name), std::string(otherwise));
}
std::vector<std::int64_t> Attrs::get_ints(std::string_view name) const {
  return read(find(name), std::vector<std::int64_t>());
}
std::vector<float> Attrs::get_floats(std::string_view name) const {
  return read(find(name), std::vector<float>());
}
std::vector<std::string> Attrs::get_strings(std::string_view name) const {
  return read(find(name), std::vector<std::string>());
}
const Tensor* Attrs::get_tensor(std::string_view name) const {
  const Attr* attr = find(name);
  return attr == nullptr ? nullptr : std::get_if<Tensor>(attr);
}

}  // namespace millstream
