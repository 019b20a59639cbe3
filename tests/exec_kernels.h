// SPDX-License-Identifier: Apache-2.0
// Kernels for tests of the executable: small, exact, and different for every node.
#pragma once

#include <fmt/format.h>

#include "millstream/exec/executable.h"
#include "millstream/kernels/function_kernel.h"

namespace millstream::testing {

inline std::uint32_t mix(std::uint32_t a, std::uint32_t b) {
  a = (a ^ b) * 0x9e3779b1u;
  return a ^ (a >> 15);
}

/// Op: every output element depends on all inputs, its place and the node's name.
inline Result<std::unique_ptr<Kernel>> make_op(const KernelSpec& spec) {
  std::uint32_t salt = 17;
  for (const char c : spec.name()) salt = mix(salt, static_cast<unsigned char>(c));
  return make_function_kernel([salt](KernelArgs& args) {
    for (std::size_t o = 0; o < args.output_count(); ++o) {
      auto out = args.output(o).as_mutable<std::uint32_t>();
      // Two passes, so that bytes that another node uses too early are seen half done.
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = mix(salt, static_cast<std::uint32_t>(i + o));
      for (std::size_t k = 0; k < args.input_count(); ++k) {
        const auto in = args.input(k).as<std::uint32_t>();
        for (std::size_t i = 0; i < out.size() && !in.empty(); ++i) out[i] = mix(out[i], in[i % in.size()]);
      }
    }
  });
}

/// Fail: an error at run time.
inline Result<std::unique_ptr<Kernel>> make_fail(const KernelSpec&) {
  return make_function_kernel([](KernelArgs&) -> Result<void> { return Error{ErrorCode::kernel, "out of luck"}; });
}

/// Throw: what a library may do.
inline Result<std::unique_ptr<Kernel>> make_throw(const KernelSpec&) {
  return make_function_kernel([](KernelArgs&) -> Result<void> { throw std::runtime_error("thrown"); });
}

/// Picky: refuses every node.
inline Result<std::unique_ptr<Kernel>> make_picky(const KernelSpec& spec) { return unsupported_node(spec, "too plain"); }

inline KernelTable test_kernels() {
  static constexpr KernelEntry kEntries[] = {{"Op", make_op}, {"Fail", make_fail}, {"Throw", make_throw}, {"Picky", make_picky}};
  KernelTable table = all_kernels();
  table.add(kEntries);
  return table;
}

}  // namespace millstream::testing
