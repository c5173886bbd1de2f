// x[i] and its like in turns of a loop: random slices and gathers, bound,
// against the turns of a plan, to the last bit and the last word of an error.
#include <random>
#include <thread>

#include "base/cancellation.h"
#include "runtime/test_loop.h"

namespace headrace {
namespace {

const std::vector<DType> kReadTypes = {
    DType::kFloat, DType::kDouble,    DType::kInt32, DType::kHalf,
    DType::kInt8,  DType::kComplex64, DType::kBool,  DType::kComplex128};
const std::vector<DType> kIndexTypes = {DType::kInt32, DType::kInt64,
                                        DType::kInt16};

// A loop of one read, chosen at random.
class RandomRead {
 public:
  explicit RandomRead(int seed) : random_(seed), loop_(Below(7) + 1) {}

  // False where the op does not take what was chosen.
  bool Slice(StringView op);
  bool Gather(StringView op);
  LoopOfCalls& loop() { return loop_; }

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }
  bool OneIn(int n) { return Below(n) == 0; }
  template <typename T>
  const T& Any(const std::vector<T>& of) {
    return of[Below(static_cast<int>(of.size()))];
  }

  Shape AnyShape(int least_rank) {
    Shape s;
    const int rank = least_rank + Below(5 - least_rank);
    for (int d = 0; d < rank; ++d) s.AddDim(1 + Below(4));
    if (rank > 0 && OneIn(4)) s.set_dim(0, 600);  // too large for a turn's own
    return s;
  }
  // A tensor that stays or, where it is small, takes turns with another one.
  ValueId Source(const Shape& shape) {
    const DType dtype = Any(kReadTypes);
    const ValueId x = loop_.Variable(FilledTensor(dtype, shape, Below(9)));
    if (shape.num_elements() < 500 && OneIn(3)) {
      const ValueId y = loop_.Variable(FilledTensor(dtype, shape, Below(9)));
      loop_.Next(x, y);
      loop_.Next(y, x);
    }
    return x;
  }
  static Tensor Ints(DType dtype, const std::vector<int64_t>& values) {
    Tensor t = *Tensor::Allocate(dtype, {static_cast<int64_t>(values.size())});
    DispatchDType(dtype, NumberTypes{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (size_t i = 0; i < values.size(); ++i) {
        t.data<T>()[i] = static_cast<T>(static_cast<float>(values[i]));
      }
    });
    return t;
  }
  // Indices that go on by `by` each turn.
  ValueId Walking(const Tensor& first, const Tensor& by) {
    const ValueId at = loop_.Variable(first);
    loop_.Next(at, loop_.Call("AddV2", {at, loop_.Constant(by)}));
    return at;
  }
  bool Keep(ValueId out) {
    if (out == kNoValue) return false;
    const Shape shape = loop_.ShapeOf(out);
    if (!shape.fully_known() || shape.num_elements() == 0 ||
        shape.num_elements() > 500) {
      return false;
    }
    loop_.Next(
        loop_.Variable(FilledTensor(loop_.p.values[out].dtype, shape, 1)), out);
    return true;
  }

  std::mt19937 random_;
  LoopOfCalls loop_;
};

bool RandomRead::Slice(StringView op) {
  const bool block = op == "Slice";
  const Shape shape = AnyShape(1);
  const ValueId x = Source(shape);
  const DType index =
      block ? Any<DType>({DType::kInt32, DType::kInt64}) : Any(kIndexTypes);
  std::vector<int64_t> first, by, end, steps;
  int64_t begin_mask = 0, end_mask = 0, ellipsis = 0, new_axis = 0, shrink = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t bit = int64_t{1} << first.size();
    const int kind = block ? 0 : Below(6);
    const int64_t size = shape[d];
    first.push_back(0);
    by.push_back(0);
    end.push_back(0);
    steps.push_back(1);
    if (block) {
      end.back() = OneIn(3) ? size : 1 + Below(static_cast<int>(size));
      first.back() = Below(static_cast<int>(size - end.back()) + 1);
      by.back() = OneIn(3) ? Below(3) - 1 : 0;
    } else if (kind < 3) {
      shrink |= bit;
      first.back() = Below(static_cast<int>(2 * size)) - size;
      by.back() = OneIn(2) ? Below(3) - 1 : 0;
    } else if (kind == 3 && ellipsis == 0) {
      ellipsis |= bit;
      break;
    } else {
      if (kind == 4) {
        new_axis |= bit;
        --d;
        continue;
      }
      begin_mask |= bit;
      end_mask |= bit;
      steps.back() = Any<int64_t>({1, 1, 2, -1, -2});
    }
    if (first.size() > 8) break;
  }
  const Tensor start = Ints(index, first);
  const ValueId begin =
      OneIn(4) ? loop_.Constant(start) : Walking(start, Ints(index, by));
  if (block) {
    return Keep(
        loop_.Call("Slice", {x, begin, loop_.Constant(Ints(index, end))}));
  }
  const ValueId behind = OneIn(2) ? begin : loop_.Constant(Ints(index, end));
  return Keep(loop_.Call("StridedSlice",
                         {x, begin, behind, loop_.Constant(Ints(index, steps))},
                         {{"begin_mask", begin_mask},
                          {"end_mask", end_mask},
                          {"ellipsis_mask", ellipsis},
                          {"new_axis_mask", new_axis},
                          {"shrink_axis_mask", shrink}}));
}

bool RandomRead::Gather(StringView op) {
  const bool places = op == "GatherNd";
  const Shape shape = AnyShape(1);
  const ValueId x = Source(shape);
  const DType index = op == "Gather"
                          ? Any<DType>({DType::kInt32, DType::kInt64})
                          : Any(kIndexTypes);
  const int axis = op == "GatherV2" ? Below(shape.rank()) : 0;
  Shape of_indices = Any<Shape>({{}, {1}, {3}, {2, 2}});
  int64_t batch_dims = 0;
  if (places) {
    of_indices.AddDim(Below(shape.rank() + 1));
  } else if (axis > 0 && OneIn(3)) {
    batch_dims = 1;
    of_indices = Any<Shape>({{shape[0]}, {shape[0], 2}});
  }
  std::vector<int64_t> first, by;
  for (int64_t i = 0; i < of_indices.num_elements(); ++i) {
    const int d =
        places ? static_cast<int>(i % of_indices[of_indices.rank() - 1]) : axis;
    first.push_back(Below(static_cast<int>(shape[d])));
    by.push_back(OneIn(3) ? Below(3) - 1 : 0);
  }
  const Tensor start = Ints(index, first).WithShape(of_indices);
  // (Turns change nothing that has no elements.)
  const ValueId at =
      first.empty() ? loop_.Constant(start)
                    : Walking(start, Ints(index, by).WithShape(of_indices));
  if (op != "GatherV2")
    return Keep(loop_.Call(std::string(op).c_str(), {x, at}));
  const int said = OneIn(2) ? axis : axis - shape.rank();
  return Keep(loop_.Call("GatherV2",
                         {x, at, loop_.Constant(Tensor::Scalar<int32_t>(said))},
                         {{"batch_dims", batch_dims}}));
}

TEST(IndexedTurns, RandomReadsHaveTheBitsOfThePlan) {
  for (const char* op :
       {"StridedSlice", "Slice", "GatherV2", "Gather", "GatherNd"}) {
    int kept = 0, bound = 0, failed = 0;
    for (int seed = 0; seed < 600; ++seed) {
      RandomRead read(seed);
      const bool slices = std::string_view(op).ends_with("Slice");
      if (!(slices ? read.Slice(op) : read.Gather(op))) continue;
      ++kept;
      const std::string what = absl::StrCat(op, " ", seed);
      ASSERT_TRUE(read.loop().Compare(what)) << what;
      if (HasFailure()) return;
      bound += read.loop().Bound()->num_kernel_calls() == 0;
      std::vector<Tensor> out;
      failed += !read.loop().RunPlan(&out).ok();
    }
    EXPECT_GT(kept, 150) << op;
    EXPECT_GT(failed, 20) << op;
    // All but places beyond the first, places in nothing, and strange sizes.
    EXPECT_GT(bound, kept * (StringView(op) == "GatherNd" ? 0.4 : 0.9)) << op;
  }
}

// x[i], as programs write it.
LoopOfCalls Row(int turns, const Tensor& x, int64_t axis) {
  LoopOfCalls loop(turns);
  const ValueId table = loop.Variable(x), i = loop.p.feeds[0];
  const ValueId one = loop.Constant(Tensor::Scalar<int32_t>(1));
  const ValueId all = loop.Constant(Tensor::Scalar<int32_t>(0));
  const auto index = [&](ValueId v) {
    return axis == 0 ? loop.Call("Pack", {v}, {{"N", 1}})
                     : loop.Call("Pack", {all, v}, {{"N", 2}});
  };
  const std::vector<int32_t> ones(axis + 1, 1);
  const ValueId row =
      loop.Call("StridedSlice",
                {table, index(i), index(loop.Call("AddV2", {i, one})),
                 loop.Constant(Tensor::Vector<int32_t>(ones))},
                {{"shrink_axis_mask", 1 << axis},
                 {"begin_mask", axis},
                 {"end_mask", axis}});
  const Shape shape = loop.ShapeOf(row);
  const ValueId sum = loop.Variable(FilledTensor(x.dtype(), shape, 3));
  loop.Next(sum, loop.Call("AddV2", {sum, row}));
  return loop;
}

TEST(IndexedTurns, RowsAreBoundCalls) {
  for (int axis : {0, 1}) {
    for (const Shape& shape : {Shape{300, 300}, Shape{8, 9}, Shape{8, 8, 3}}) {
      LoopOfCalls loop = Row(8, FilledTensor(DType::kFloat, shape, 2), axis);
      EXPECT_TRUE(loop.Compare(shape.ToString()));
      EXPECT_EQ(loop.Bound()->num_kernel_calls(), 0);
    }
  }
  LoopOfCalls large = Row(700, FilledTensor(DType::kFloat, {700, 30}, 2), 0);
  EXPECT_TRUE(large.Compare("large"));
  // The sum, the copy of the row, the counter, the index behind and the test.
  EXPECT_LE(large.Bound()->num_calls(), 5);
}

TEST(IndexedTurns, AnIndexThatIsTooLargeInALateTurn) {
  for (int axis : {0, 1}) {
    LoopOfCalls loop =
        Row(1000, FilledTensor(DType::kFloat, {500, 500}, 2), axis);
    std::vector<Tensor> out;
    const Status s = loop.RunPlan(&out);
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(s.message().find(absl::StrCat("slice index 500 of dimension ",
                                            axis, " out of bounds.")),
              std::string::npos)
        << s;
    EXPECT_TRUE(loop.Compare("late"));
  }
}

TEST(IndexedTurns, TheFirstErrorOfATurnIsSaid) {
  for (bool gather_first : {false, true}) {
    LoopOfCalls loop(9);
    const ValueId x = loop.Variable(FilledTensor(DType::kFloat, {5}, 2));
    const ValueId i = loop.p.feeds[0];
    const ValueId zero = loop.Constant(Tensor::Scalar<int32_t>(0));
    const ValueId four = loop.Constant(Tensor::Scalar<int32_t>(5));
    const auto gather = [&] {
      loop.Next(loop.Variable(Tensor::Scalar<float>(0)),
                loop.Call("GatherV2", {x, i, zero}));
    };
    if (gather_first) gather();
    loop.Next(loop.Variable(Tensor::Scalar<int32_t>(0)),
              loop.Call("FloorDiv", {four, loop.Call("Sub", {four, i})}));
    if (!gather_first) gather();
    EXPECT_TRUE(loop.Compare(gather_first ? "gather" : "division"));
  }
}

TEST(IndexedTurns, EndlessLoopsOfReadsStopSoon) {
  LoopOfCalls loop = Row(5, FilledTensor(DType::kFloat, {700, 30}, 2), 0);
  const ValueId i = loop.p.feeds[0];
  const ValueId size = loop.Constant(Tensor::Scalar<int32_t>(700));
  loop.Next(i, loop.Call("FloorMod", {loop.p.fetches[0], size}));
  loop.truth = loop.Constant(Tensor::Scalar(true));
  const auto bound = loop.Bound();
  ASSERT_NE(bound, nullptr);
  const Deadline deadline(20);
  const Status s = bound->Run({}, &loop.state);
  EXPECT_EQ(s.code(), absl::StatusCode::kDeadlineExceeded) << s;
}

TEST(IndexedTurns, ThreadsReadTablesOfTheirOwn) {
  LoopOfCalls loop = Row(600, FilledTensor(DType::kFloat, {600, 3}, 0), 0);
  const auto bound = loop.Bound();
  ASSERT_NE(bound, nullptr);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int run = 0; run < 40; ++run) {
        std::vector<Tensor> state = loop.state;
        state[1] = *Tensor::Allocate(DType::kFloat, {600, 3});
        state[2] = *Tensor::Allocate(DType::kFloat, {3});
        std::fill_n(state[1].data<float>(), 1800, static_cast<float>(t + 1));
        std::fill_n(state[2].data<float>(), 3, 0.0f);
        const bool ok = bound->Run({}, &state).ok() &&
                        state[2].data<float>()[1] == 600.0f * (t + 1);
        wrong[t] += !ok;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (int w : wrong) EXPECT_EQ(w, 0);
}

TEST(IndexedTurns, PacksOfAFewAreBound) {
  for (int n : {1, 2, 3, 4}) {
    for (int64_t axis : {0, 1, -1}) {
      LoopOfCalls loop(5);
      std::vector<ValueId> parts;
      for (int k = 0; k < n; ++k) {
        parts.push_back(loop.Variable(FilledTensor(DType::kFloat, {2, 3}, k)));
      }
      for (int k = 0; k < n; ++k) loop.Next(parts[k], parts[(k + 1) % n]);
      const ValueId all = loop.Call("Pack", parts, {{"N", n}, {"axis", axis}});
      loop.Next(
          loop.Variable(FilledTensor(DType::kFloat, loop.ShapeOf(all), 7)),
          all);
      EXPECT_TRUE(loop.Compare(absl::StrCat(n, " ", axis)));
      EXPECT_EQ(loop.Bound()->num_kernel_calls(), n > 3 ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace headrace
