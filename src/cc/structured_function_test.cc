// Traced functions of structures: signatures, traces that are kept, names.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "cc/access.h"
#include "graph/function.h"
#include "gtest/gtest.h"
#include "headrace/headrace.h"
#include "op/resource.h"

namespace tf = headrace::tf;

namespace {

using Map = std::map<std::string, tf::Tensor>;
using Floats = std::vector<float>;

struct Plain {
  tf::Tensor a;
  int times;
};
struct Named {
  tf::Tensor speed, place;
  static constexpr std::array kFields{"speed", "place"};
};

tf::Tensor Range(int64_t n) {
  Floats values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  return tf::Tensor::From(values);
}

std::string ErrorOf(const std::function<void()>& call,
                    tf::ErrorCode code = tf::ErrorCode::kInvalidArgument) {
  try {
    call();
  } catch (const tf::Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

std::shared_ptr<headrace::Resource> ResourceOf(const tf::Variable& v) {
  const headrace::Value& handle = tf::internal::Access::ValueOf(v.handle());
  return tf::internal::Check(headrace::ResourceAs<headrace::Variable>(
      handle.tensor(), &headrace::DefaultResources()));
}

TEST(StructuredFunction, TakesAndGivesStructures) {
  using Pair = std::tuple<tf::Tensor, std::vector<tf::Tensor>>;
  const auto f = tf::function([](const Map& m, const Pair& pair,
                                 const std::array<tf::Tensor, 2>& two,
                                 const std::optional<tf::Tensor>& maybe) {
    tf::Tensor sum = m.at("x") + two[0] * two[1];
    for (const tf::Tensor& t : std::get<1>(pair)) sum = sum + t;
    if (maybe) sum = sum + *maybe;
    return Map{{"sum", sum}, {"first", std::get<0>(pair)}};
  });
  const tf::Tensor one(1.0f), two(2.0f);
  Map out = f({{"x", one}}, {two, {one, one}}, {two, two}, std::nullopt);
  EXPECT_EQ(out.at("sum").item<float>(), 7);
  EXPECT_EQ(out.at("first").item<float>(), 2);
  out = f({{"x", one}}, {two, {one}}, {two, two}, two);
  EXPECT_EQ(out.at("sum").item<float>(), 8);
  EXPECT_EQ(f.trace_count(), 2);
  out = f({{"x", two}}, {two, {two}}, {two, two}, two);
  EXPECT_EQ(f.trace_count(), 2);
}

TEST(StructuredFunction, ValuesBelongToTheSignatureAsParametersSay) {
  const auto power = tf::function([](const tf::Tensor& x, int n) {
    tf::Tensor y = x;
    for (int i = 1; i < n; ++i) y = y * x;
    return y;
  });
  EXPECT_EQ(power(tf::Tensor(2.0f), 3).item<float>(), 8);
  EXPECT_EQ(power(3.0f, 2).item<float>(), 9);
  EXPECT_EQ(power(4.0f, 2).item<float>(), 16);
  EXPECT_EQ(power.trace_count(), 2);
  const auto named = tf::function(
      [](const std::string& how, bool twice, double by, const tf::Tensor& x) {
        const tf::Tensor y = how == "add" ? x + by : x * by;
        return twice ? y + y : y;
      });
  EXPECT_EQ(named("add", true, 0.5, 1.0f).item<float>(), 3);
  EXPECT_EQ(named("multiply", false, 0.5, 1.0f).item<float>(), 0.5);
  EXPECT_EQ(named.trace_count(), 2);
}

TEST(StructuredFunction, DtypesShapesAndStructuresAreSignatures) {
  int runs = 0;
  const auto twice = tf::function([&](const std::vector<tf::Tensor>& x) {
    ++runs;
    std::vector<tf::Tensor> sums;
    for (const tf::Tensor& t : x) sums.push_back(t + t);
    return sums;
  });
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(twice({tf::Tensor(3)})[0].item<int32_t>(), 6);
    EXPECT_EQ(twice({tf::Tensor(3.0f)})[0].item<float>(), 6);
    EXPECT_EQ(twice({tf::Tensor(3.0)})[0].item<double>(), 6);
    EXPECT_EQ(twice({Range(2)})[0].vector<float>(), (Floats{0, 2}));
    EXPECT_EQ(twice({Range(3)})[0].vector<float>(), (Floats{0, 2, 4}));
    EXPECT_EQ(twice({Range(2), tf::Tensor(3)})[1].item<int32_t>(), 6);
    EXPECT_TRUE(twice({}).empty());
  }
  EXPECT_EQ(runs, 7);
  EXPECT_EQ(twice.trace_count(), 7);
}

TEST(StructuredFunction, Aggregates) {
  const auto f = tf::function([](const Plain& p, const Named& n) {
    return Named{.speed = n.speed * static_cast<float>(p.times),
                 .place = n.place + p.a};
  });
  const Named out =
      f({tf::Tensor(1.0f), 3}, {tf::Tensor(2.0f), tf::Tensor(5.0f)});
  EXPECT_EQ(out.speed.item<float>(), 6);
  EXPECT_EQ(out.place.item<float>(), 6);
  // Fields with names are a dict: another type with the keys reads them.
  const auto [place, speed] = [&] {
    Map m = f.untyped().Call<Map>(Plain{tf::Tensor(1.0f), 3},
                                  Named{tf::Tensor(2.0f), tf::Tensor(5.0f)});
    return std::pair(m.at("place"), m.at("speed"));
  }();
  EXPECT_EQ(place.item<float>(), 6);
  EXPECT_EQ(speed.item<float>(), 6);
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(StructuredFunction, VariablesAreArguments) {
  const tf::Variable v(tf::Tensor(2.0f)), w(tf::Tensor(3.0f));
  const auto f = tf::function(
      [](const tf::Variable& x, const tf::Variable& y) { return x * y; });
  EXPECT_EQ(f(v, w).item<float>(), 6);
  EXPECT_EQ(f(w, v).item<float>(), 6);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f(v, v).item<float>(), 4);  // one variable is another signature
  EXPECT_EQ(f.trace_count(), 2);
  tf::GradientTape tape;
  const tf::Tensor y = f(v, w);
  EXPECT_EQ(tape.gradient(y, tf::Source(v)).item<float>(), 3);
}

TEST(StructuredFunction, NothingAndEffects) {
  const tf::Variable count(tf::Tensor(0.0f));
  const auto add =
      tf::function([&](const tf::Tensor& x) { count.assign_add(x); });
  add(2.0f);
  add(3.0f);
  EXPECT_EQ(count.value().item<float>(), 5);
  const auto twice = tf::function([&] { return count.value() * 2.0; });
  EXPECT_EQ(twice().item<float>(), 10);
  add(1.0f);
  EXPECT_EQ(twice().item<float>(), 12);
  EXPECT_EQ(twice.trace_count(), 1);
}

TEST(StructuredFunction, ErrorsNameThePart) {
  const auto f = tf::function([](const Map& m) { return m.at("x"); },
                              {.name = "first", .arg_names = {"batch"}});
  std::string text = ErrorOf([&] {
    f.untyped().Call<Plain>(Map{{"x", tf::Tensor(1.0f)}});
  });
  EXPECT_NE(
      text.find("Function first: expected a tuple or list of 2 as result, "
                "got TensorSpec(shape=(), dtype=tf.float32"),
      std::string::npos)
      << text;
  text = ErrorOf([&] { f.untyped().Call<tf::Tensor>(tf::Tensor(1.0f)); });
  EXPECT_NE(text.find("Function first: expected a dict as batch"),
            std::string::npos)
      << text;
  text = ErrorOf([&] { f.untyped().Call<tf::Tensor>(); });
  EXPECT_NE(text.find("takes 1 arguments, got 0"), std::string::npos) << text;
}

TEST(StructuredFunction, SizesStayOpenWhereItIsAskedFor) {
  const auto f = tf::function(
      [](const tf::Tensor& x) { return tf::Sum(x, tf::Tensor(0)); },
      {.reduce_retracing = true});
  for (int n = 1; n < 9; ++n) {
    EXPECT_EQ(f(Range(n)).item<float>(), n * (n - 1) / 2);
  }
  EXPECT_EQ(f.trace_count(), 2);
  const auto concrete = f.GetConcreteFunction(
      tf::TensorSpec{tf::DType::kFloat32, tf::TensorShape{-1}});
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_EQ(concrete.inputs()[0].shape, tf::TensorShape{-1});
}

TEST(StructuredFunction, TracesAreBounded) {
  const auto f = tf::function([](const tf::Tensor& x) { return x + 1.0; });
  for (int n = 1; n <= 128; ++n) f(Range(n));
  EXPECT_EQ(f.trace_count(), 128);
  for (int n = 129; n < 160; ++n) {
    EXPECT_EQ(f(Range(n)).vector<float>()[n - 1], n);
  }
  EXPECT_EQ(f.trace_count(), 129);  // one for all sizes
  // Where the body wants to know the sizes, it does; then traces go.
  int runs = 0;
  const auto sized = tf::function([&](const tf::Tensor& x) {
    ++runs;
    return x * static_cast<double>(x.num_elements());
  });
  for (int n = 1; n < 200; ++n) {
    EXPECT_EQ(sized(Range(n)).vector<float>()[n - 1], n * (n - 1));
  }
  EXPECT_EQ(sized.trace_count(), 199);
  EXPECT_EQ(runs, 200);  // one try
}

TEST(StructuredFunction, TracesInUseStay) {
  std::map<int, int> runs;
  const auto f = tf::function([&](int n) {
    ++runs[n];
    return tf::Tensor(n);
  });
  f(-1);
  for (int n = 0; n < 300; ++n) {
    EXPECT_EQ(f(n).item<int32_t>(), n);
    f(-1);
  }
  EXPECT_EQ(runs[-1], 1);
  f(0);
  EXPECT_EQ(runs[0], 2);  // it went
}

// All that a function holds: its body, the functions of the graph, variables.
TEST(StructuredFunction, FunctionsGoWithWhatTheyHold) {
  const auto count = [] { return headrace::GlobalFunctions().Names().size(); };
  const size_t before = count();
  std::weak_ptr<int> body;
  std::weak_ptr<headrace::Resource> variable;
  std::optional<tf::ConcreteFunction> kept;
  {
    auto life = std::make_shared<int>(0);
    body = life;
    const tf::Variable v(tf::Tensor(2.0f));
    variable = ResourceOf(v);
    const auto f =
        tf::function([v, life](const tf::Tensor& x) { return x * v; });
    EXPECT_EQ(f(3.0f).item<float>(), 6);
    EXPECT_EQ(f(Range(2)).vector<float>(), (Floats{0, 2}));
    EXPECT_EQ(count(), before + 2);
    kept = f.GetConcreteFunction(tf::Tensor(0.0f));
  }
  EXPECT_TRUE(body.expired());
  EXPECT_EQ(count(), before + 1);
  EXPECT_EQ(kept->Call(tf::Tensor(4.0f)).item<float>(), 8);
  kept.reset();
  EXPECT_EQ(count(), before);
  EXPECT_TRUE(variable.expired());
}

TEST(StructuredFunction, InputSignature) {
  const auto f = tf::function(
      [](const tf::Tensor& x, const tf::Tensor& y) { return x + y; },
      {.name = "plus",
       .arg_names = {"x", "y"},
       .input_signature = {{{tf::DType::kFloat32, tf::TensorShape{-1}},
                            {tf::DType::kFloat32, {}}}}});
  EXPECT_EQ(f(Range(3), 1.0f).vector<float>(), (Floats{1, 2, 3}));
  EXPECT_EQ(f(Range(5), 1.0f).vector<float>()[4], 5);
  EXPECT_EQ(f.trace_count(), 1);
  const std::string text = ErrorOf([&] { f(Range(3), Range(3)); });
  EXPECT_NE(text.find("Function plus: its input_signature does not fit: "
                      "expected TensorSpec(shape=(), dtype=tf.float32, "
                      "name=None) as y, got TensorSpec(shape=(3,)"),
            std::string::npos)
      << text;
  ErrorOf([&] { f.untyped().Call<tf::Tensor>(Range(3)); });
}

TEST(StructuredFunction, RetracesAreExplained) {
  const auto f = tf::function([](const tf::Tensor& x, int n) { return x * n; },
                              {.arg_names = {"x"}});
  f(Range(2), 1);
  EXPECT_TRUE(f.explain_retraces().empty());
  f(Range(2), 2);
  f(Range(3), 2);
  EXPECT_EQ(f.explain_retraces(),
            (std::vector<std::string>{
                "trace 2: args[1] changed from 1 to 2",
                "trace 3: x changed from TensorSpec(shape=(2,), "
                "dtype=tf.float32, name=None) to TensorSpec(shape=(3,), "
                "dtype=tf.float32, name=None)"}));
}

TEST(StructuredFunction, ConcreteFunctions) {
  const tf::Variable v(tf::Tensor(10.0f));
  const auto f = tf::function(
      [&](const Map& m, int n) {
        return std::pair(m.at("a") * n + v, m.at("b"));
      },
      {.name = "g", .arg_names = {"m", "n"}});
  const tf::TensorSpec any{tf::DType::kFloat32, tf::TensorShape{-1}};
  const tf::ConcreteFunction c = f.GetConcreteFunction(
      std::map<std::string, tf::TensorSpec>{{"a", any}, {"b", any}}, 2);
  EXPECT_EQ(c.arg_names(), (std::vector<std::string>{"m_a", "m_b"}));
  EXPECT_EQ(c.captured_inputs().size(), 1);
  EXPECT_EQ(c.outputs().size(), 2);
  using Pair = std::pair<tf::Tensor, tf::Tensor>;
  const Map m = {{"a", Range(2)}, {"b", Range(3)}};
  EXPECT_EQ(c.Call<Pair>(m, 2).first.vector<float>(), (Floats{10, 12}));
  EXPECT_EQ(
      c.CallNamed({{"m_b", Range(1)}, {"m_a", Range(2)}})[1].vector<float>(),
      Floats{0});
  std::string text = ErrorOf([&] { c.Call<Pair>(m, 3); });
  EXPECT_NE(text.find("expected 2 as n, got 3"), std::string::npos) << text;
  text = ErrorOf([&] { c.CallNamed({{"m_a", Range(2)}}); });
  EXPECT_NE(text.find("takes (m_a, m_b), got (m_a)"), std::string::npos)
      << text;
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(StructuredFunction, GradientsOfAnyOrder) {
  const auto f = tf::function([](const Map& m) {
    return std::vector<tf::Tensor>{m.at("x") * m.at("x") * m.at("x")};
  });
  const tf::Tensor x(2.0f);
  tf::GradientTape outer;
  outer.watch(x);
  tf::Tensor slope;
  {
    tf::GradientTape inner;
    inner.watch(x);
    slope = inner.gradient(f({{"x", x}})[0], tf::Source(x));
  }
  EXPECT_EQ(slope.item<float>(), 12);
  EXPECT_EQ(outer.gradient(slope, tf::Source(x)).item<float>(), 12);
}

TEST(StructuredFunction, ThreadsThatTraceFirstTraceOnce) {
  constexpr int kThreads = 16;
  std::atomic<int> runs = 0, waiting = kThreads, right = 0;
  const auto f = tf::function([&](const tf::Tensor& x, int n) {
    ++runs;
    return x * n;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      right += f(tf::Tensor(static_cast<float>(t)), 2).item<float>() == 2 * t;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, kThreads);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(StructuredFunction, ThreadsTraceAndCall) {
  const auto f = tf::function(
      [](const std::vector<tf::Tensor>& x, int n) { return x[0] * n; },
      {.reduce_retracing = true});
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i < 40; ++i) {
        right += f({Range(i)}, t % 3).vector<float>()[i - 1] ==
                 static_cast<float>((i - 1) * (t % 3));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 8 * 39);
}

// A child has no thread that would let the lock of a trace under way go.
TEST(StructuredFunction, ForkedChildrenTrace) {
#ifdef _GLIBCXX_TSAN
  // Its allocator's locks are not opened in a child: what another thread held
  // of them, one that just ends, stands still there for good.
  GTEST_SKIP() << "the thread sanitizer does not serve forked children";
#endif
  std::atomic<bool> begun = false, end = false;
  const auto f = tf::function([&](const tf::Tensor& x, bool waits) {
    begun = true;
    while (waits && !end) usleep(1000);
    return x + 1.0;
  });
  std::thread tracing([&] { f(1.0f, true); });
  while (!begun) usleep(1000);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(f(1.0f, false).item<float>() == 2 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  end = true;
  tracing.join();
  EXPECT_EQ(status, 0);
}

}  // namespace
