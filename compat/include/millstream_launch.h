/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels for streams of acl/acl.h: functions of the host, called once a block, the blocks one after the other.
 *
 *   void scale(const float *in, float *out, size_t n);      // works on its share: mst_block_index(), mst_block_count()
 *   MST_LAUNCH(scale, 8, nullptr, stream)(in, out, n);      // instead of scale<<<8, nullptr, stream>>>(in, out, n)
 */
#pragma once

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One block; `arguments` is the launch's copy, aligned to 8. Not 0: the task fails. */
typedef int (*mst_kernel_body)(const void *arguments);

/** `name` and `arguments` are copied. Errors: 100000 (null), 107000 (an empty name, no blocks, 4 GiB of arguments), those of a submit. */
aclError mst_launch(const char *name, mst_kernel_body body, uint32_t blocks, const void *arguments, size_t bytes, aclrtStream stream);
/** Inside a kernel, which block this is and of how many; else 0 and 0. */
uint32_t mst_block_index(void);
uint32_t mst_block_count(void);

#ifdef __cplusplus
}
#endif

/* MST_LAUNCH needs C++17. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace millstream_launch {

/// Where argument I lies in the block: each at the next multiple of its own alignment.
template <class... A>
struct Layout {
  template <std::size_t I>
  static constexpr std::size_t offset() {
    constexpr std::size_t size[] = {sizeof(A)..., 0}, align[] = {alignof(A)..., 1};
    std::size_t at = 0;
    for (std::size_t i = 0;; ++i) {
      at = (at + align[i] - 1) / align[i] * align[i];
      if (i == I) return at;
      at += size[i];
    }
  }
  static constexpr std::size_t kBytes = offset<sizeof...(A)>();
};

/// Keeps the call's arguments from deciding A: they convert to what the kernel takes.
template <class T>
struct Same {
  using type = T;
};

template <class T>
T read(const unsigned char *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class R, class... A>
class Launch {
  static_assert((std::is_trivially_copyable_v<A> && ...), "arguments of kernels are copied byte by byte");
  static_assert(((alignof(A) <= 8) && ...), "arguments of kernels are aligned to 8");

 public:
  Launch(const char *name, R (*kernel)(A...), std::uint32_t blocks, aclrtStream stream)
      : name_(name), kernel_(kernel), blocks_(blocks), stream_(stream) {}

  aclError operator()(typename Same<A>::type... arguments) const {
    using All = Layout<R (*)(A...), A...>;
    alignas(8) unsigned char block[All::kBytes];
    std::memcpy(block, &kernel_, sizeof kernel_);
    put(block, std::index_sequence_for<A...>(), arguments...);
    return mst_launch(name_, kernel_ == nullptr ? nullptr : &run, blocks_, block, All::kBytes, stream_);
  }

 private:
  template <std::size_t... I>
  static void put([[maybe_unused]] unsigned char *block, std::index_sequence<I...>, const A &...arguments) {
    (std::memcpy(block + Layout<R (*)(A...), A...>::template offset<I + 1>(), &arguments, sizeof arguments), ...);
  }
  template <std::size_t... I>
  static int call([[maybe_unused]] const unsigned char *block, std::index_sequence<I...>) {
    const auto kernel = read<R (*)(A...)>(block);
    if constexpr (std::is_void_v<R>) {
      kernel(read<A>(block + Layout<R (*)(A...), A...>::template offset<I + 1>())...);
      return 0;
    } else {
      // Not 0 stays not 0 when it becomes an int.
      const R result = kernel(read<A>(block + Layout<R (*)(A...), A...>::template offset<I + 1>())...);
      const int number = static_cast<int>(result);
      return result == R() ? 0 : number != 0 ? number : 1;
    }
  }
  static int run(const void *arguments) {
    return call(static_cast<const unsigned char *>(arguments), std::index_sequence_for<A...>());
  }

  const char *name_;
  R (*kernel_)(A...);
  std::uint32_t blocks_;
  aclrtStream stream_;
};

template <class R, class... A>
Launch<R, A...> launch(const char *name, R (*kernel)(A...), std::uint32_t blocks, const void * /* on-chip memory: unused */,
                       aclrtStream stream) {
  return {name, kernel, blocks, stream};
}

}  // namespace millstream_launch

/// A kernel returns nothing or a number, not 0 for failure; one that throws fails too. `l2ctrl` is not used.
#define MST_LAUNCH(kernel, blocks, l2ctrl, stream) ::millstream_launch::launch(#kernel, kernel, blocks, l2ctrl, stream)
#endif
