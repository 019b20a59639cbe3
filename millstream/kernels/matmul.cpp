// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm: f32 through oneDNN with constant factors packed once; f16 and bf16 likewise after
// widening; f64 and integers in plain loops.
#include "millstream/kernels/product.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

bool is_product_integer(DType type) {
  return type == DType::i32 || type == DType::u32 || type == DType::i64 || type == DType::u64;
}

/// Runs a product of real tensors; keeps the primitive of the last shape.
class RealProduct {
 public:
  RealProduct(const KernelSpec& spec, std::size_t factor) : node_(spec.name()), threads_(std::max(1, spec.threads)) {
    const Tensor* b = spec.constant(factor);
    if (b != nullptr && b->dtype() == DType::f32) constant_ = *b;
  }

  Result<void> prepare(const ProductShape& shape) {
    if (shape_ == shape) return {};
    shape_.reset();
    made_.reset();
    if (count_of(shape.a) > 0 && count_of(shape.b) > 0) {
      const onednn::ThreadCount guard(threads_);
      auto made = onednn::guarded(ErrorCode::unsupported_operator, [&] {
        return PreparedProduct::make(shape, constant_.elements() > 0 ? constant_.as<float>().data() : nullptr);
      });
      // A shape that the library refuses takes the plain loops.
      if (made.ok()) made_ = std::move(made).value();
    }
    shape_ = shape;
    return {};
  }

  template <class T>
  Result<void> run(const ProductShape& shape, const T* a, const T* b, const T* bias, T* dst,
                   StreamScratch& scratch) {
    if constexpr (std::is_same_v<T, float>) {
      MST_TRY_VOID(prepare(shape));
      if (made_) {
        const onednn::ThreadCount guard(threads_);
        return onednn::guarded(ErrorCode::kernel, [&] { return made_->run(a, b, bias, dst, scratch, node_); });
      }
    }
    plain_product<T, std::conditional_t<std::is_same_v<T, float>, double, T>>(shape, a, b, dst, threads_);
    const std::int64_t n = shape.columns(), rows = count_of(shape.dst) / std::max<std::int64_t>(n, 1);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        dst[i * n + j] = static_cast<T>(shape.alpha) * dst[i * n + j] + (bias != nullptr ? bias[j] : T{});
      }
    }
    return {};
  }

 private:
  std::string node_;
  int threads_;
  Tensor constant_;
  std::optional<ProductShape> shape_;
  std::optional<PreparedProduct> made_;
};

template <class T>
void integer_product(const ProductShape& shape, const Tensor& a, const Tensor& b, Tensor& dst, int threads) {
  // Unsigned arithmetic wraps; signed would overflow.
  plain_product<T, T>(shape, a.as<T>().data(), b.as<T>().data(), dst.as_mutable<T>().data(), threads);
}

Result<std::unique_ptr<Kernel>> make_matmul(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type) && !is_product_integer(type)) {
    return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  }
  RealProduct product(spec, 1);
  const std::string node(spec.name());
  const int threads = std::max(1, spec.threads);
  if (type == DType::f32 && spec.input_desc(0).is_static() && spec.input_desc(1).is_static()) {
    MST_TRY(const ProductShape shape,
            matmul_shape(node, spec.input_desc(0).dims(), spec.input_desc(1).dims()));
    MST_TRY_VOID(product.prepare(shape));
  }
  return make_function_kernel([product = std::move(product), node, threads](KernelArgs& args) mutable -> Result<void> {
    const Tensor &a = args.input(0), &b = args.input(1);
    Tensor& y = args.output(0);
    MST_TRY(const ProductShape shape, matmul_shape(node, a.shape(), b.shape()));
    if (count_of(shape.dst) != y.elements() || b.dtype() != a.dtype()) {
      return kernel_failed(node, "output shape or element types do not follow from the inputs");
    }
    if (y.elements() == 0) return {};
    switch (a.dtype()) {
      case DType::i32:
      case DType::u32: integer_product<std::uint32_t>(shape, a, b, y, threads); return {};
      case DType::i64:
      case DType::u64: integer_product<std::uint64_t>(shape, a, b, y, threads); return {};
      default:
        return with_real(a.dtype(), [&](auto zero) {
          using T = decltype(zero);
          const RealIn<T> ra(a), rb(b);
          RealOut<T> ry(y);
          return product.run<T>(shape, ra.data(), rb.data(), nullptr, ry.data(), args.scratch());
        });
    }
  });
}

/// y += beta * c, c broadcast to [m, n].
template <class T>
Result<void> add_broadcast(std::string_view node, T* y, std::int64_t m, std::int64_t n, const T* c,
                           std::span<const std::int64_t> c_dims, T beta) {
  const std::int64_t rows = c_dims.size() >= 2 ? c_dims[c_dims.size() - 2] : 1;
  const std::int64_t columns = c_dims.empty() ? 1 : c_dims.back();
  if (c_dims.size() > 2 || (rows != 1 && rows != m) || (columns != 1 && columns != n)) {
    return kernel_failed(node, fmt::format("C does not broadcast to [{}, {}]", m, n));
  }
  for (std::int64_t i = 0; i < m; ++i) {
    const T* row = c + (rows == 1 ? 0 : i * columns);
    for (std::int64_t j = 0; j < n; ++j) y[i * n + j] += beta * row[columns == 1 ? 0 : j];
  }
  return {};
}

template <class T>
void scale_integers(T* y, std::int64_t n, float alpha) {
  if (alpha == 1.0f) return;
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(static_cast<double>(alpha) * static_cast<double>(y[i]));
}

class GemmKernel final : public Kernel {
 public:
  explicit GemmKernel(const KernelSpec& spec)
      : node_(spec.name()),
        trans_a_(spec.attrs().get_int("transA", 0) != 0),
        trans_b_(spec.attrs().get_int("transB", 0) != 0),
        alpha_(spec.attrs().get_float("alpha", 1.0f)),
        beta_(spec.attrs().get_float("beta", 1.0f)),
        threads_(std::max(1, spec.threads)),
        product_(spec, 1) {}

  Result<void> prepare_static(const KernelSpec& spec) {
    if (spec.input_desc(0).dtype != DType::f32 || !spec.input_desc(0).is_static() ||
        !spec.input_desc(1).is_static() || (spec.has_input(2) && !spec.input_desc(2).is_static())) {
      return {};
    }
    const Dims c = spec.has_input(2) ? spec.input_desc(2).dims() : Dims();
    MST_TRY(const ProductShape shape, shape_of(spec.input_desc(0).dims(), spec.input_desc(1).dims(),
                                               spec.has_input(2), c));
    return product_.prepare(shape);
  }

  Result<void> run(KernelArgs& args) override {
    const Tensor &a = args.input(0), &b = args.input(1);
    const bool has_c = args.has_input(2);
    MST_TRY(const ProductShape shape,
            shape_of(a.shape(), b.shape(), has_c, has_c ? args.input(2).shape() : std::span<const std::int64_t>()));
    if (args.output(0).elements() != shape.rows() * shape.columns() || a.dtype() != b.dtype() ||
        (has_c && args.input(2).dtype() != a.dtype())) {
      return kernel_failed(node_, "output shape or element types do not follow from the inputs");
    }
    if (args.output(0).elements() == 0) return {};
    switch (a.dtype()) {
      case DType::i32: return run_integer<std::int32_t>(args, shape);
      case DType::u32: return run_integer<std::uint32_t>(args, shape);
      case DType::i64: return run_integer<std::int64_t>(args, shape);
      case DType::u64: return run_integer<std::uint64_t>(args, shape);
      default:
        return with_real(a.dtype(), [&](auto zero) { return run_real<decltype(zero)>(args, shape); });
    }
  }

 private:
  Result<ProductShape> shape_of(std::span<const std::int64_t> a, std::span<const std::int64_t> b, bool has_c,
                                std::span<const std::int64_t> c) const {
    if (a.size() != 2 || b.size() != 2) return kernel_failed(node_, "A and B must be matrices");
    ProductShape s;
    s.a.assign(a.begin(), a.end());
    s.b.assign(b.begin(), b.end());
    s.trans_a = trans_a_;
    s.trans_b = trans_b_;
    s.alpha = alpha_;
    s.dst = {a[trans_a_ ? 1 : 0], b[trans_b_ ? 0 : 1]};
    if (s.depth() != b[trans_b_ ? 1 : 0]) {
      return kernel_failed(node_, fmt::format("inner extents {} and {} differ", s.depth(), b[trans_b_ ? 1 : 0]));
    }
    s.bias = has_c && alpha_ == 1.0f && beta_ == 1.0f && !c.empty() && c.size() <= 2 &&
             c.back() == s.dst[1] && count_of(c) == s.dst[1];
    return s;
  }

  template <class T>
  Result<void> run_real(KernelArgs& args, const ProductShape& shape) {
    const RealIn<T> a(args.input(0)), b(args.input(1));
    std::optional<RealIn<T>> c;
    if (args.has_input(2)) c.emplace(args.input(2));
    RealOut<T> y(args.output(0));
    MST_TRY_VOID(product_.run<T>(shape, a.data(), b.data(), shape.bias ? c->data() : nullptr, y.data(),
                                 args.scratch()));
    if (!c || shape.bias || beta_ == 0.0f) return {};
    return add_broadcast<T>(node_, y.data(), shape.rows(), shape.columns(), c->data(), args.input(2).shape(),
                            static_cast<T>(beta_));
  }

  template <class T>
  Result<void> run_integer(KernelArgs& args, const ProductShape& shape) {
    using U = std::make_unsigned_t<T>;
    integer_product<U>(shape, args.input(0), args.input(1), args.output(0), threads_);
    T* y = args.output(0).as_mutable<T>().data();
    scale_integers(y, args.output(0).elements(), alpha_);
    if (!args.has_input(2) || beta_ == 0.0f) return {};
    std::vector<T> c(args.input(2).as<T>().begin(), args.input(2).as<T>().end());
    scale_integers(c.data(), static_cast<std::int64_t>(c.size()), beta_);
    return add_broadcast<U>(node_, reinterpret_cast<U*>(y), shape.rows(), shape.columns(),
                            reinterpret_cast<const U*>(c.data()), args.input(2).shape(), U{1});
  }

  std::string node_;
  bool trans_a_;
  bool trans_b_;
  float alpha_;
  float beta_;
  int threads_;
  RealProduct product_;
};

Result<std::unique_ptr<Kernel>> make_gemm(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type) && !is_product_integer(type)) {
    return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  }
  auto kernel = std::make_unique<GemmKernel>(spec);
  MST_TRY_VOID(kernel->prepare_static(spec));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

constexpr KernelEntry kEntries[] = {{"Gemm", make_gemm}, {"MatMul", make_matmul}};

}  // namespace

std::span<const KernelEntry> kernels_matmul() { return kEntries; }

}  // namespace millstream
