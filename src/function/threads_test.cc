// Several threads at once in one executable, one traced function, one loop and
// one variable; the thread sanitizer watches.
#include <atomic>
#include <functional>
#include <thread>

#include "autodiff/function_gradient.h"
#include "eager/tape.h"
#include "function/concrete_function.h"
#include "graph/builder.h"
#include "gtest/gtest.h"
#include "op/resource.h"
#include "runtime/executable.h"

namespace headrace {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 50;

void OnThreads(const std::function<void(int thread)>& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
  for (std::thread& t : threads) t.join();
}

// body(scope, arguments) traced for float arguments of `shape`.
std::shared_ptr<ConcreteFunction> Traced(
    int args, const Shape& shape,
    const std::function<Value(OpScope&, absl::Span<const Value>)>& body) {
  GraphBuilder builder(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&builder);
  std::vector<Value> in, captures;
  for (int i = 0; i < args; ++i) {
    in.push_back(*builder.AddPlaceholder("x", DType::kFloat, shape, nullptr));
  }
  OpScope s;
  Value y = body(s, in);
  EXPECT_TRUE(s.ok()) << s.status();
  for (const GraphBuilder::Capture& c : builder.captures()) {
    captures.push_back(c.outer);
    in.push_back(c.inner);
  }
  FunctionPtr f =
      MakeFunction(FunctionLibrary::NewName("threads"), builder, in, {y});
  EXPECT_TRUE(GlobalFunctions().Add(f).ok());
  return std::make_shared<ConcreteFunction>(f, captures, std::vector<Value>());
}

Value Filled(const Shape& shape, float number) {
  Tensor t = *Tensor::Allocate(DType::kFloat, shape);
  std::fill_n(t.data<float>(), t.num_elements(), number);
  return Value(std::move(t));
}

float First(const Value& v) { return v.tensor().data<float>()[0]; }

TEST(Threads, OneFunction) {
  for (const Shape& shape : {Shape{64, 64}, Shape{-1, 64}}) {
    auto f = Traced(1, shape, [](OpScope& s, absl::Span<const Value> x) {
      Value y = s("MatMul", {x[0], x[0]});
      return s("AddV2", {s("Mul", {y, x[0]}), x[0]});
    });
    OnThreads([&](int t) {
      float x = static_cast<float>(t + 1);
      for (int i = 0; i < kRounds; ++i) {
        ValueList out;
        Status s = f->Call({Filled({64, 64}, x)}, &out);
        ASSERT_TRUE(s.ok()) << s;
        ASSERT_EQ(First(out[0]), 64 * x * x * x + x);
      }
    });
  }
}

TEST(Threads, OneGradient) {
  auto f = Traced(1, Shape{32, 32}, [](OpScope& s, absl::Span<const Value> x) {
    return s("Mul", {s("Mul", {x[0], x[0]}), x[0]});
  });
  OnThreads([&](int t) {
    float x = static_cast<float>(t + 1);
    for (int i = 0; i < kRounds; ++i) {
      Value in = Filled({32, 32}, x);
      Tape tape(false, true);
      tape.Watch(in);
      tape.Start();
      ValueList out;
      Status s = f->Call({in}, &out);
      ASSERT_TRUE(s.ok()) << s;
      tape.Stop();
      auto g = tape.Gradients({out[0]}, {in}, {});
      ASSERT_TRUE(g.ok()) << g.status();
      ASSERT_EQ(First(out[0]), x * x * x);
      ASSERT_EQ(First((*g)[0].dense), 3 * x * x);
    }
  });
}

TEST(Threads, OneVariable) {
  OpScope s;
  Value handle = s("VarHandleOp", {},
                   {{"dtype", DType::kFloat},
                    {"shape", Shape{16}},
                    {"shared_name", "threads_test"},
                    {"container", ""}});
  s.All("AssignVariableOp", {handle, Filled({16}, 0)},
        {{"dtype", DType::kFloat}});
  ASSERT_TRUE(s.ok()) << s.status();
  auto f = Traced(1, Shape{16}, [&](OpScope& s, absl::Span<const Value> x) {
    s.All("AssignAddVariableOp", {handle, x[0]}, {{"dtype", DType::kFloat}});
    return s("ReadVariableOp", {handle}, {{"dtype", DType::kFloat}});
  });
  OnThreads([&](int) {
    for (int i = 0; i < kRounds; ++i) {
      ValueList out;
      Status status = f->Call({Filled({16}, 1)}, &out);
      ASSERT_TRUE(status.ok()) << status;
      const float* values = out[0].tensor().data<float>();
      ASSERT_GE(values[0], 1);
      for (int k = 1; k < 16; ++k) ASSERT_EQ(values[k], values[0]);
    }
  });
  Value total = s("ReadVariableOp", {handle}, {{"dtype", DType::kFloat}});
  EXPECT_EQ(First(total), kThreads * kRounds);
}

TEST(Threads, TracesComeAndGo) {
  size_t before = GlobalFunctions().Names().size();
  OnThreads([&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      auto inner = Traced(1, Shape{4}, [](OpScope& s, auto x) {
        return s("Mul", {x[0], x[0]});
      });
      auto outer = Traced(1, Shape{4}, [&](OpScope& s, auto x) {
        ValueList y = CallFunction(s, inner->function(), {x[0]});
        return s("Mul", {y[0], x[0]});
      });
      inner.reset();  // kept by the graph that calls it
      Value in = Filled({4}, static_cast<float>(t));
      Tape tape(false, true);
      tape.Watch(in);
      tape.Start();
      ValueList out;
      Status s = outer->Call({in}, &out);
      ASSERT_TRUE(s.ok()) << s;
      tape.Stop();
      auto g = tape.Gradients({out[0]}, {in}, {});
      ASSERT_TRUE(g.ok()) << g.status();
      ASSERT_EQ(First((*g)[0].dense), 3.0f * t * t);
    }
  });
  EXPECT_EQ(GlobalFunctions().Names().size(), before);
}

}  // namespace
}  // namespace headrace
