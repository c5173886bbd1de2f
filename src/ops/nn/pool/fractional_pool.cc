// FractionalMaxPool and FractionalAvgPool with their gradients: windows of
// uneven sizes, drawn at random (Graham, "Fractional Max-Pooling").
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/math/loops/wrapping.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

using PoolTypes = TypeList<float, double, int32_t, int64_t>;

// --- Where windows begin: output_size + 1 ascending places.

std::vector<int64_t> PseudoRandomPlaces(int64_t n, int64_t count,
                                        Philox generator) {
  const double alpha = static_cast<double>(n) / static_cast<double>(count);
  const auto k = static_cast<double>(n / count);
  // As in Graham's paper: u must leave room for all windows at the end of the
  // image.
  const double most =
      std::min((k + 2) / alpha - 1, (static_cast<double>(n) + 1 - k) / alpha -
                                        static_cast<double>(count - 1));
  const double u = PhiloxWords(generator).NextDouble() * most;
  std::vector<int64_t> places(count + 1, 0);
  places[count] = n;
  for (int64_t i = 1; i < count; ++i) {
    // ceil(alpha (i + u)), one less as places count from 0.
    const auto place =
        static_cast<int64_t>(std::ceil(alpha * (static_cast<double>(i) + u)));
    places[i] = std::clamp<int64_t>(place - 1, 0, n);
  }
  return places;
}

std::vector<int64_t> RandomPlaces(int64_t n, int64_t count, Philox generator) {
  std::vector<int64_t> sizes(count, n / count);
  // Sizes differ by at most one.
  for (int64_t i = 0; i < n % count; ++i) ++sizes[i];
  PhiloxWords words(generator);
  for (int64_t i = 0; i + 1 < count; ++i) {
    const uint32_t left = static_cast<uint32_t>(count - i);
    // Fisher and Yates: all orders of the sizes are as likely.
    std::swap(sizes[i], sizes[i + words.Next() % left]);
  }
  std::vector<int64_t> places(count + 1, 0);
  for (int64_t i = 0; i < count; ++i) places[i + 1] = places[i] + sizes[i];
  return places;
}

// Advances `generator` past what it took.
std::vector<int64_t> PlacesOf(int64_t n, int64_t count, bool pseudo,
                              Philox* generator) {
  // Equal windows need no random numbers, and none are taken.
  if (n % count == 0) {
    std::vector<int64_t> places(count + 1);
    for (int64_t i = 0; i <= count; ++i) places[i] = i * (n / count);
    return places;
  }
  auto places = pseudo ? PseudoRandomPlaces(n, count, *generator)
                       : RandomPlaces(n, count, *generator);
  // Four words a block of Philox; a double takes one block.
  generator->Skip(pseudo ? 1 : (count + 3) / 4);
  return places;
}

// --- One window a time.

struct PooledRange {
  int64_t begin, end;
};

// The i-th window: with `overlap` it takes the next one's first place too.
PooledRange WindowAt(const int64_t* places, int64_t i, bool overlap,
                     int64_t n) {
  return {places[i], std::min(n, places[i + 1] + (overlap ? 1 : 0))};
}

// The dimensions of one call and its windows.
struct Layout {
  int64_t batch, rows, columns, depth, out_rows, out_columns;
  const int64_t* row_places;
  const int64_t* column_places;
  bool overlap;

  int64_t At(int64_t b, int64_t y, int64_t x) const {
    return ((b * rows + y) * columns + x) * depth;
  }
  int64_t OutAt(int64_t b, int64_t y, int64_t x) const {
    return ((b * out_rows + y) * out_columns + x) * depth;
  }
  // fn(out_place, rows, columns) for each window of image b, row y.
  template <typename F>
  void Windows(int64_t b, int64_t y, F&& fn) const {
    const PooledRange r = WindowAt(row_places, y, overlap, rows);
    for (int64_t x = 0; x < out_columns; ++x) {
      fn(OutAt(b, y, x), r, WindowAt(column_places, x, overlap, columns));
    }
  }
};

Layout LayoutOf(const Shape& in, int64_t out_rows, int64_t out_columns,
                const int64_t* row_places, const int64_t* column_places,
                bool overlap) {
  return {in[0],       in[1],      in[2],         in[3],  out_rows,
          out_columns, row_places, column_places, overlap};
}

template <typename T>
void MaxWindow(const Layout& l, const T* in, int64_t b, PooledRange r,
               PooledRange c, T* out) {
  std::copy_n(in + l.At(b, r.begin, c.begin), l.depth, out);
  for (int64_t y = r.begin; y < r.end; ++y) {
    for (int64_t x = c.begin; x < c.end; ++x) {
      const T* row = in + l.At(b, y, x);
      for (int64_t d = 0; d < l.depth; ++d) out[d] = std::max(out[d], row[d]);
    }
  }
}

template <typename T>
void MeanWindow(const Layout& l, const T* in, int64_t b, PooledRange r,
                PooledRange c, T* out) {
  std::fill_n(out, l.depth, T{0});
  for (int64_t y = r.begin; y < r.end; ++y) {
    for (int64_t x = c.begin; x < c.end; ++x) {
      const T* row = in + l.At(b, y, x);
      for (int64_t d = 0; d < l.depth; ++d) {
        out[d] = Plus(out[d], row[d]);
      }
    }
  }
  const T count = static_cast<T>((r.end - r.begin) * (c.end - c.begin));
  for (int64_t d = 0; d < l.depth; ++d) out[d] /= count;
}

// --- Forward.

StatusOr<const std::vector<float>*> RatiosOf(const ResolvedOp& op) {
  const auto& ratios = op.attr<std::vector<float>>("pooling_ratio");
  if (ratios.size() != 4) {
    return InvalidArgument("pooling_ratio field must specify 4 dimensions");
  }
  for (float r : ratios) {
    // Not <: NaN is refused, too.
    if (!(r >= 1)) {
      return InvalidArgument("pooling_ratio cannot be smaller than 1, got: ",
                             r);
    }
  }
  if (ratios[0] != 1 || ratios[3] != 1) {
    return Unimplemented(
        "Fractional ", op.name() == "FractionalMaxPool" ? "max" : "average",
        " pooling is not yet supported on the batch nor channel dimension.");
  }
  return &ratios;
}

Status PoolShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const auto* ratios, RatiosOf(c.op()));
  const Shape& in = c.input(0);
  if (in.known_rank() && in.rank() != 4) {
    return InvalidArgument("tensor_in must be 4-dimensional");
  }
  Shape out = Shape::UnknownOfRank(4);
  for (int d = 0; in.known_rank() && d < 4; ++d) {
    const float ratio = (*ratios)[d];
    if (in[d] < 0) continue;
    if (d > 0 && d < 3 && static_cast<float>(in[d]) < ratio) {
      return InvalidArgument(
          "Pooling ratio is higher than input dimension size for dimension ", d,
          ". Input dim size: ", in[d], " pooling ratio: ", ratio);
    }
    // In float, as upstream: a size in double could be one more.
    const float size = std::floor(static_cast<float>(in[d]) / ratio);
    out.set_dim(d, d == 0 || d == 3
                       ? in[d]
                       : std::min(in[d], static_cast<int64_t>(size)));
  }
  for (int i : {1, 2}) {
    c.set_output(i, Shape{out[i] < 0 ? -1 : out[i] + 1});
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

template <bool kMax>
class FractionalPool : public Kernel {
 public:
  explicit FractionalPool(const ResolvedOp& op)
      : generator_(op), fixed_(generator_.now()) {}

  static StatusOr<std::unique_ptr<Kernel>> Make(const ResolvedOp& op) {
    if (!op.bool_attr("deterministic") &&
        (op.int_attr("seed") != 0 || op.int_attr("seed2") != 0)) {
      return InvalidArgument(
          "Both seed and seed2 should be 0 if deterministic is false.");
    }
    return std::unique_ptr<Kernel>(std::make_unique<FractionalPool>(op));
  }

  Status Run(KernelContext& c) override {
    const Shape &in = c.input(0).shape(), &out = c.output(0).shape();
    const bool pseudo = c.op().bool_attr("pseudo_random");
    // Deterministic: each run begins at the same place of the stream.
    Philox generator = fixed_;
    if (!c.op().bool_attr("deterministic")) {
      // One run may not see numbers of another, whichever is first.
      HR_ASSIGN_OR_RETURN(generator, generator_.Reserve(out[1] + out[2]));
    }
    for (int i : {1, 2}) {
      const auto places = PlacesOf(in[i], out[i], pseudo, &generator);
      std::copy(places.begin(), places.end(), c.out<int64_t>(i));
    }
    if (out.num_elements() == 0) return OkStatus();
    const Layout l =
        LayoutOf(in, out[1], out[2], c.out<int64_t>(1), c.out<int64_t>(2),
                 c.op().bool_attr("overlapping"));
    DispatchDType(c.input(0).dtype(), PoolTypes{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Pool<T>(l, c.in<T>(0), c.out<T>(0));
    });
    return OkStatus();
  }

 private:
  template <typename T>
  static void Pool(const Layout& l, const T* in, T* out) {
    const double cost = static_cast<double>(l.columns * l.depth) * 2;
    ParallelFor(l.batch * l.out_rows, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / l.out_rows;
        l.Windows(b, i % l.out_rows,
                  [&](int64_t at, PooledRange r, PooledRange w) {
                    kMax ? MaxWindow(l, in, b, r, w, out + at)
                         : MeanWindow(l, in, b, r, w, out + at);
                  });
      }
    });
  }

  SeededGenerator generator_;
  const Philox fixed_;
};

// --- Backward.

// Places as they came: as many as there are windows and one, and every window
// with a place inside of the image.
Status CheckPlaces(const Tensor& places, StringView what, int64_t windows,
                   int64_t size, bool overlap) {
  if (places.rank() != 1 || places.dim(0) != windows + 1) {
    return InvalidArgument(what, " sequence tensor must have ", windows + 1,
                           " elements, got shape ", places.shape());
  }
  const int64_t* at = places.data<int64_t>();
  for (int64_t i = 0; i <= windows; ++i) {
    if (i == windows || at[i + 1] > (int64_t{1} << 62)) continue;
    const PooledRange w = WindowAt(at, i, overlap, size);
    if (w.begin >= w.end) {
      return InvalidArgument(what, " sequence [", at[i], ", ", at[i + 1],
                             ") is no window of ", size, " places");
    }
  }
  return OkStatus();
}

// Inputs `first` and `first + 1` are the places; output 0 is like the image.
StatusOr<Layout> GradientLayout(const KernelContext& c, const Shape& image,
                                const Shape& grad, int first) {
  if (image.rank() != 4 || grad.rank() != 4) {
    return InvalidArgument("out_backprop and the image must be 4-dimensional");
  }
  for (int i : {first, first + 1}) {
    const Tensor& places = c.input(i);
    for (int64_t k = 0; k < places.num_elements(); ++k) {
      if (places.IntAt(k) >= 0) continue;
      return InvalidArgument(i == first ? "Row" : "Column",
                             " sequence tensor values must not be negative, "
                             "got ",
                             places.IntAt(k));
    }
  }
  if (image[0] != grad[0] || image[3] != grad[3]) {
    return InvalidArgument("out_backprop of shape ", grad,
                           " does not fit an image of shape ", image);
  }
  const bool overlap = c.op().bool_attr("overlapping");
  const Tensor &rows = c.input(first), &columns = c.input(first + 1);
  HR_RETURN_IF_ERROR(CheckPlaces(rows, "Row", grad[1], image[1], overlap));
  HR_RETURN_IF_ERROR(
      CheckPlaces(columns, "Column", grad[2], image[2], overlap));
  return LayoutOf(image, grad[1], grad[2], rows.data<int64_t>(),
                  columns.data<int64_t>(), overlap);
}

template <typename T>
Status MaxGradientOf(const KernelContext& c, const Layout& l) {
  const T *in = c.in<T>(0), *wanted = c.in<T>(1), *grad = c.in<T>(2);
  T* out = c.out<T>(0);
  std::vector<T> most(l.depth);
  Status status;
  // One thread: windows may overlap.
  for (int64_t i = 0; i < l.batch * l.out_rows; ++i) {
    const int64_t b = i / l.out_rows;
    l.Windows(b, i % l.out_rows, [&](int64_t at, PooledRange r, PooledRange w) {
      MaxWindow(l, in, b, r, w, most.data());
      for (int64_t d = 0; d < l.depth; ++d) {
        // NaN equals nothing, itself included.
        if (most[d] != wanted[at + d] && most[d] == most[d]) {
          status =
              InvalidArgument("tensor_out_dup is not the same as tensor_out");
          return;
        }
        // The first of equals gets it.
        // Where nothing is equal (NaN) the window's first place takes it.
        int64_t place = l.At(b, r.begin, w.begin) + d;
        bool found = false;
        for (int64_t y = r.begin; y < r.end && !found; ++y) {
          for (int64_t x = w.begin; x < w.end && !found; ++x) {
            found = in[l.At(b, y, x) + d] == most[d];
            if (found) place = l.At(b, y, x) + d;
          }
        }
        out[place] = Plus(out[place], grad[at + d]);
      }
    });
    if (!status.ok()) break;
  }
  return status;
}

Status RunMaxGradient(KernelContext& c) {
  const Shape &in = c.input(0).shape(), &grad = c.input(2).shape();
  if (c.input(1).shape() != grad) {
    return InvalidArgument("orig_output of shape ", c.input(1).shape(),
                           " does not fit out_backprop of shape ", grad);
  }
  HR_ASSIGN_OR_RETURN(const Layout l, GradientLayout(c, in, grad, 3));
  FillZero(c.output(0));
  Status status;
  DispatchDType(c.input(0).dtype(), PoolTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = MaxGradientOf<T>(c, l);
  });
  return status;
}

// Sums in double, as upstream does, also for integers.
template <typename T>
Status MeanGradientOf(const KernelContext& c, const Layout& l) {
  HR_ASSIGN_OR_RETURN(Tensor sums,
                      c.Temporary(DType::kDouble, c.output(0).shape()));
  FillZero(sums);
  double* to = sums.data<double>();
  const T* grad = c.in<T>(1);
  for (int64_t i = 0; i < l.batch * l.out_rows; ++i) {
    const int64_t b = i / l.out_rows;
    l.Windows(b, i % l.out_rows, [&](int64_t at, PooledRange r, PooledRange w) {
      const auto count =
          static_cast<double>((r.end - r.begin) * (w.end - w.begin));
      for (int64_t y = r.begin; y < r.end; ++y) {
        for (int64_t x = w.begin; x < w.end; ++x) {
          double* row = to + l.At(b, y, x);
          for (int64_t d = 0; d < l.depth; ++d) {
            row[d] += static_cast<double>(grad[at + d]) / count;
          }
        }
      }
    });
  }
  std::transform(to, to + sums.num_elements(), c.out<T>(0),
                 [](double v) { return static_cast<T>(v); });
  return OkStatus();
}

Status RunMeanGradient(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Layout l, GradientLayout(c, c.output(0).shape(),
                                                     c.input(1).shape(), 2));
  Status status;
  DispatchDType(c.input(1).dtype(), PoolTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = MeanGradientOf<T>(c, l);
  });
  return status;
}

Status MeanGradientShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape s, c.ShapeValue(0));
  if (s.known_rank() && s.rank() != 4) {
    return InvalidArgument("orig_input_tensor must be 4-dimensional, got ", s);
  }
  c.set_output(0, std::move(s));
  return OkStatus();
}

Status FractionalMaxPoolGradient(GradientContext& g) {
  if (!g.grad()) return OkStatus();
  g.set(0, g("FractionalMaxPoolGrad",
             {g.input(0), g.output(0), g.grad(), g.output(1), g.output(2)},
             {{"overlapping", g.op().bool_attr("overlapping")}}));
  return g.status();
}

Status MeanPoolGradient(GradientContext& g) {
  if (!g.grad()) return OkStatus();
  g.set(0, g("FractionalAvgPoolGrad",
             {g.ShapeOf(g.input(0), DType::kInt64), g.grad(), g.output(1),
              g.output(2)},
             {{"overlapping", g.op().bool_attr("overlapping")}}));
  return g.status();
}

OpBuilder PoolOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("value: T")
      .Output("output: T")
      .Output("row_pooling_sequence: int64")
      .Output("col_pooling_sequence: int64")
      .Attr("pooling_ratio: list(float) >= 4")
      .Attr("pseudo_random: bool = false")
      .Attr("overlapping: bool = false")
      .Attr("deterministic: bool = false")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("T: {float, double, int32, int64}")
      .Doc(doc)
      .Shape(PoolShape);
  return b;
}

const OpRegistrar max_pool =
    PoolOp("FractionalMaxPool", "The largest of windows of uneven sizes.")
        .Gradient(FractionalMaxPoolGradient)
        .Cpu(FractionalPool<true>::Make);
const OpRegistrar mean_pool =
    PoolOp("FractionalAvgPool", "The means of windows of uneven sizes.")
        .Gradient(MeanPoolGradient)
        .GradientSkips({0}, {0})
        .Cpu(FractionalPool<false>::Make);

HR_OP(FractionalMaxPoolGrad)
    .Input("orig_input: T")
    .Input("orig_output: T")
    .Input("out_backprop: T")
    .Input("row_pooling_sequence: int64")
    .Input("col_pooling_sequence: int64")
    .Output("output: T")
    .Attr("overlapping: bool = false")
    .Attr("T: {float, double, int32, int64}")
    .Doc("The gradient of FractionalMaxPool.")
    .Shape(LikeInput<0>)
    .Cpu(Compute<RunMaxGradient>);

HR_OP(FractionalAvgPoolGrad)
    .Input("orig_input_tensor_shape: int64")
    .Input("out_backprop: T")
    .Input("row_pooling_sequence: int64")
    .Input("col_pooling_sequence: int64")
    .Output("output: T")
    .Attr("overlapping: bool = false")
    .Attr("T: {float, double, int32, int64}")
    .Doc("The gradient of FractionalAvgPool.")
    .Shape(MeanGradientShape)
    .Cpu(Compute<RunMeanGradient>);

}  // namespace
}  // namespace headrace
