// SPDX-License-Identifier: Apache-2.0
// Conv and ConvTranspose: oneDNN where it takes the shape, direct loops elsewhere (f64, negative padding).
//
// Tensors are row-major between operators. On AVX-512, channels-last convolution with reorders at both
// ends measured 1.2 to 8 times faster than convolution on row-major tensors, except for dense 1x1
// windows over large images, which are one matrix product already.
#include <omp.h>

#include "millstream/kernels/dnnl.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"
#include "millstream/kernels/window.h"

namespace millstream {
namespace {

using onednn::Desc;

/// What a prepared primitive depends on.
struct ConvKey {
  Dims src;
  Dims weights;
  Dims dst;
  bool bias = false;
  friend bool operator==(const ConvKey&, const ConvKey&) = default;
};

std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// An f32 (transposed) convolution for one set of shapes.
class PreparedConv {
 public:
  /// `packed_from`: constant weights in the file's layout, packed once here; null = packed in each run.
  static Result<PreparedConv> make(const ConvKey& key, const Window& window, std::int64_t groups,
                                   bool transposed, const float* packed_from) {
    PreparedConv conv;
    const Desc weights_file = file_layout(key.weights, groups, transposed);
    const Desc weights_any = onednn::any(weights_file_dims(key.weights, groups, transposed));
    const Desc dst_plain = onednn::plain(key.dst);
    std::optional<Desc> bias;
    if (key.bias) bias = onednn::plain(Dims{key.dst[1]});
    onednn::ConvWindow w{window.strides, window.dilations, window.begin, window.end};
    Dims src_dims = key.src;
    Desc src_plain = onednn::plain(src_dims);
    const bool product = !transposed && is_product(window, groups);
    if (product) {
      // Only every stride-th sample is read: a view of those, then a window of stride 1.
      Dims view_dims = key.src, steps = strides_of(key.src);
      for (std::size_t d = 0; d < window.rank(); ++d) {
        view_dims[2 + d] = key.dst[2 + d];
        steps[2 + d] *= window.strides[d];
      }
      if (const std::optional<Desc> view = onednn::try_strided(view_dims, steps)) {
        src_plain = *view;
        src_dims = view_dims;
        w.strides.assign(window.rank(), 1);
      }
    }
    // Below about 128 columns the product is too thin; packed channels-last weights win.
    const bool keep_plain = product && count_of(key.dst, 2, key.dst.size()) >= 128;
    const bool plain_source = keep_plain || (!transposed && groups == 1 && key.src[1] <= 4);
    const Desc src = plain_source ? onednn::plain(src_dims) : onednn::any(src_dims);
    const Desc dst = keep_plain ? dst_plain : onednn::any(key.dst);
    MST_TRY(const onednn::Prepared prepared, transposed
                                                 ? onednn::make_deconvolution(src, weights_any, bias, dst, w)
                                                 : onednn::make_convolution(src, weights_any, bias, dst, w));
    // Plain ends, the primitive's own layouts between them, a reorder where the two differ. Memory objects
    // are made once; a run only points them at its buffers.
    conv.src_ = unbound(src_plain);
    conv.dst_ = unbound(dst_plain);
    dnnl::memory src_in = conv.src_, dst_out = conv.dst_;
    if (prepared.src != src_plain) {
      src_in = conv.inner_src_ = unbound(prepared.src);
      MST_TRY_VOID(conv.add_reorder(conv.src_, src_in));
    }
    dnnl::memory weights_in;
    if (packed_from != nullptr) {
      MST_TRY(weights_in, onednn::reordered_copy(weights_file, packed_from, prepared.weights));
    } else {
      weights_in = conv.weights_ = unbound(weights_file);
      if (prepared.weights != weights_file) {
        weights_in = conv.inner_weights_ = unbound(prepared.weights);
        MST_TRY_VOID(conv.add_reorder(conv.weights_, weights_in));
      }
    }
    if (prepared.dst != dst_plain) dst_out = conv.inner_dst_ = unbound(prepared.dst);
    Step step{prepared.primitive,
              {{DNNL_ARG_SRC, src_in}, {DNNL_ARG_WEIGHTS, weights_in}, {DNNL_ARG_DST, dst_out}},
              unbound(prepared.scratchpad)};
    if (prepared.bias) {
      conv.bias_ = unbound(*prepared.bias);
      step.args.emplace(DNNL_ARG_BIAS, conv.bias_);
    }
    conv.add(std::move(step));
    if (conv.inner_dst_) MST_TRY_VOID(conv.add_reorder(dst_out, conv.dst_));
    return conv;
  }

  Result<void> run(const float* src, const float* weights, const float* bias, float* dst,
                   StreamScratch& scratch, std::string_view node) {
    const std::size_t src_bytes = bytes_of(inner_src_), weight_bytes = bytes_of(inner_weights_),
                      dst_bytes = bytes_of(inner_dst_);
    std::byte* base = scratch.bytes(src_bytes + weight_bytes + dst_bytes + pad_bytes_).data();
    bind(src_, src);
    bind(weights_, weights);
    bind(bias_, bias);
    bind(dst_, dst);
    bind(inner_src_, base);
    bind(inner_weights_, base + src_bytes);
    bind(inner_dst_, base + src_bytes + weight_bytes);
    for (Step& step : steps_) {
      bind(step.scratchpad, base + src_bytes + weight_bytes + dst_bytes);
      MST_TRY_VOID(onednn::execute(step.primitive, scratch, step.args, node));
    }
    return {};
  }

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> args;
    dnnl::memory scratchpad;
  };

  static dnnl::memory unbound(const Desc& desc) {
    return dnnl::memory(desc, onednn::engine(), DNNL_MEMORY_NONE);
  }
  static void bind(dnnl::memory& memory, const void* bytes) {
    if (memory && memory.get_data_handle() != bytes) memory.set_data_handle(const_cast<void*>(bytes));
  }
  static std::size_t bytes_of(const dnnl::memory& memory) {
    return memory ? padded(memory.get_desc().get_size()) : 0;
  }

  void add(Step step) {
    pad_bytes_ = std::max(pad_bytes_, step.scratchpad.get_desc().get_size());
    step.args.emplace(DNNL_ARG_SCRATCHPAD, step.scratchpad);
    steps_.push_back(std::move(step));
  }

  Result<void> add_reorder(const dnnl::memory& from, const dnnl::memory& to) {
    MST_TRY(const onednn::PreparedReorder reorder, onednn::make_reorder(from.get_desc(), to.get_desc()));
    add({reorder.primitive, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, unbound(reorder.scratchpad)});
    return {};
  }

  /// A dense 1x1 window without padding.
  static bool is_product(const Window& window, std::int64_t groups) {
    for (std::size_t d = 0; d < window.rank(); ++d) {
      if (window.kernel[d] != 1 || window.begin[d] != 0 || window.end[d] != 0) return false;
    }
    return groups == 1;
  }

  /// oneDNN's logical dims [(g,) out per group, in per group, k...].
  static Dims weights_file_dims(const Dims& file, std::int64_t groups, bool transposed) {
    const std::int64_t outs = transposed ? file[1] : file[0] / groups;
    const std::int64_t ins = transposed ? file[0] / groups : file[1];
    Dims dims;
    if (groups > 1) dims.push_back(groups);
    dims.push_back(outs);
    dims.push_back(ins);
    dims.insert(dims.end(), file.begin() + 2, file.end());
    return dims;
  }

  /// Those dims over the file's bytes: ONNX keeps [M, C/g, k...], transposed [C, M/g, k...].
  static Desc file_layout(const Dims& file, std::int64_t groups, bool transposed) {
    const Dims dims = weights_file_dims(file, groups, transposed);
    Dims strides = strides_of(dims);
    if (transposed) {
      const std::size_t o = groups > 1 ? 1 : 0, i = o + 1;
      const std::int64_t k = count_of(file, 2, file.size());
      strides[o] = k;
      strides[i] = dims[o] * k;
      if (groups > 1) strides[0] = dims[i] * dims[o] * k;
    }
    return onednn::strided(dims, strides);
  }

  std::vector<Step> steps_;
  std::size_t pad_bytes_ = 0;
  // Null where a layout needs no second buffer, or weights are packed.
  dnnl::memory src_, weights_, bias_, dst_, inner_src_, inner_weights_, inner_dst_;
};

class ConvKernel final : public Kernel {
 public:
  ConvKernel(const KernelSpec& spec, bool transposed)
      : node_(spec.name()),
        window_(WindowAttrs::read(spec.attrs())),
        groups_(spec.attrs().get_int("group", 1)),
        transposed_(transposed),
        has_output_shape_(spec.attrs().has("output_shape")),
        threads_(std::max(1, spec.threads)) {
    if (const Tensor* w = spec.constant(1); w != nullptr && w->dtype() == DType::f32) weights_ = *w;
  }

  Result<void> prepare_static(const KernelSpec& spec) {
    if (!spec.input_desc(0).is_static() || !spec.input_desc(1).is_static() ||
        !spec.output_desc(0).is_static() || spec.input_desc(0).dtype != DType::f32) {
      return {};
    }
    return prepare({spec.input_desc(0).dims(), spec.input_desc(1).dims(), spec.output_desc(0).dims(),
                    spec.has_input(2)});
  }

  Result<void> run(KernelArgs& args) override {
    const Tensor& x = args.input(0);
    const ConvKey key{dims_of(x), dims_of(args.input(1)), dims_of(args.output(0)), args.has_input(2)};
    if (args.input(1).dtype() != x.dtype() || (args.has_input(2) && args.input(2).dtype() != x.dtype())) {
      return kernel_failed(node_, "element types of input, weights and bias differ");
    }
    if (key_ != key) MST_TRY_VOID(prepare(key));
    if (args.has_input(2) && args.input(2).elements() != key.dst[1]) {
      return kernel_failed(node_, "bias does not hold one number an output channel");
    }
    if (args.output(0).elements() == 0) return {};
    return with_real(x.dtype(), [&](auto zero) { return run_as<decltype(zero)>(args); });
  }

 private:
  template <class T>
  Result<void> run_as(KernelArgs& args) {
    const RealIn<T> x(args.input(0)), w(args.input(1));
    std::optional<RealIn<T>> bias;
    if (args.has_input(2)) bias.emplace(args.input(2));
    RealOut<T> y(args.output(0));
    if constexpr (std::is_same_v<T, float>) {
      if (conv_) {
        const onednn::ThreadCount guard(threads_);
        return onednn::guarded(ErrorCode::kernel, [&] {
          return conv_->run(x.data(), w.data(), bias ? bias->data() : nullptr, y.data(), args.scratch(), node_);
        });
      }
    }
    const Dims& src = key_->src;
    const Dims& dst = key_->dst;
    const std::span<const std::int64_t> in(src.begin() + 2, src.end()), out(dst.begin() + 2, dst.end());
    const T* b = bias ? bias->data() : nullptr;
    if (transposed_) {
      // The window slides over the output.
      direct_deconvolution<T, double>(x.data(), w.data(), b, y.data(), src[0], src[1], dst[1], groups_,
                                      Window3(resolved_, out, in), threads_);
    } else {
      direct_convolution<T, double>(x.data(), w.data(), b, y.data(), src[0], src[1], dst[1], groups_,
                                    Window3(resolved_, in, out), threads_);
    }
    return {};
  }

  Result<void> prepare(ConvKey key) {
    key_.reset();
    conv_.reset();
    MST_TRY_VOID(check(key));
    const std::size_t rank = key.src.size() - 2;
    Dims kernel(key.weights.begin() + 2, key.weights.end());
    const std::span<const std::int64_t> in(key.src.begin() + 2, key.src.end()),
        out(key.dst.begin() + 2, key.dst.end());
    MST_TRY(resolved_, window_.resolve(node_, in, kernel));
    if (resolved_.kernel != kernel) return kernel_failed(node_, "kernel_shape is not the weights' shape");
    bool negative = false;
    for (std::size_t d = 0; d < rank; ++d) {
      if (transposed_) {
        // What the output's extent leaves for padding; output_padding makes the end smaller.
        const std::int64_t total =
            (in[d] - 1) * resolved_.strides[d] + resolved_.extent(d) - out[d];
        if (has_output_shape_ || window_.auto_pad == "SAME_UPPER" || window_.auto_pad == "SAME_LOWER") {
          const std::int64_t pads = std::max<std::int64_t>(total, 0);
          resolved_.begin[d] = window_.auto_pad == "SAME_UPPER" ? pads / 2 : pads - pads / 2;
        }
        resolved_.end[d] = total - resolved_.begin[d];
      } else {
        const std::int64_t full = in[d] + resolved_.begin[d] + resolved_.end[d];
        if (full < resolved_.extent(d) || (full - resolved_.extent(d)) / resolved_.strides[d] + 1 != out[d]) {
          return kernel_failed(node_, fmt::format("output extent {} does not follow from input extent {}",
                                                  out[d], in[d]));
        }
      }
      negative = negative || resolved_.begin[d] < 0 || resolved_.end[d] < 0;
    }
    const bool empty = count_of(key.src) == 0 || count_of(key.dst) == 0 || count_of(key.weights) == 0;
    if (!empty && !negative) {
      const onednn::ThreadCount guard(threads_);
      auto made = onednn::guarded(ErrorCode::unsupported_operator, [&] {
        return PreparedConv::make(key, resolved_, groups_, transposed_,
                                  weights_.elements() > 0 ? weights_.as<float>().data() : nullptr);
      });
      // A shape that the library refuses takes the direct loops.
      if (made.ok()) conv_ = std::move(made).value();
    }
    key_ = std::move(key);
    return {};
  }

  Result<void> check(const ConvKey& key) const {
    const std::size_t rank = key.src.size();
    const auto fail = [&](std::string_view what) { return Result<void>(kernel_failed(node_, what)); };
    if (rank < 3 || rank > 5) return fail("only 1 to 3 spatial dimensions are supported");
    if (key.weights.size() != rank || key.dst.size() != rank) return fail("input and weights differ in rank");
    const std::int64_t in = transposed_ ? key.weights[0] : key.weights[1] * groups_;
    const std::int64_t out = transposed_ ? key.weights[1] * groups_ : key.weights[0];
    if (groups_ < 1 || key.src[1] % groups_ != 0 || out % groups_ != 0) {
      return fail("channels are not a multiple of group");
    }
    if (key.src[1] != in || key.dst[1] != out || key.src[0] != key.dst[0]) {
      return fail("channels of input, weights and output do not fit together");
    }
    return {};
  }

  std::string node_;
  WindowAttrs window_;
  std::int64_t groups_;
  bool transposed_;
  bool has_output_shape_;
  int threads_;
  Tensor weights_;
  Window resolved_;
  std::optional<ConvKey> key_;
  std::optional<PreparedConv> conv_;
};

Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec, bool transposed) {
  const TensorDesc& x = spec.input_desc(0);
  if (!is_real(x.dtype)) return unsupported_node(spec, "element type is not floating point");
  if (x.shape && (x.shape->size() < 3 || x.shape->size() > 5)) {
    return unsupported_node(spec, "only 1 to 3 spatial dimensions are supported");
  }
  auto kernel = std::make_unique<ConvKernel>(spec, transposed);
  MST_TRY_VOID(kernel->prepare_static(spec));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Result<std::unique_ptr<Kernel>> make_conv(const KernelSpec& spec) { return make(spec, false); }
Result<std::unique_ptr<Kernel>> make_conv_transpose(const KernelSpec& spec) { return make(spec, true); }

constexpr KernelEntry kEntries[] = {{"Conv", make_conv}, {"ConvTranspose", make_conv_transpose}};

}  // namespace

std::span<const KernelEntry> kernels_conv() { return kEntries; }

}  // namespace millstream
