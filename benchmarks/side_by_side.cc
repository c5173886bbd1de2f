// What plans gain by running independent heavy steps side by side: each against
// the same plan one by one, by turns in one process.
//   bench_side_by_side [seconds a row]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "base/thread_pool.h"
#include "eager/tape.h"
#include "graph/builder.h"
#include "runtime/executable.h"

namespace headrace {
namespace {

using Values = std::vector<Value>;
using Body = std::function<Values(OpScope&, const Values&)>;
using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const Status& s) {
  std::printf("%s\n", s.ToString().c_str());
  std::exit(1);
}

FunctionPtr TraceOf(const std::vector<Shape>& args, const Body& body) {
  GraphBuilder builder(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&builder);
  Values in;
  for (const Shape& s : args) {
    in.push_back(*builder.AddPlaceholder("x", DType::kFloat, s, nullptr));
  }
  OpScope s;
  Values out = body(s, in);
  if (!s.ok()) Fail(s.status());
  for (Value& v : out) v = *builder.Import(v);
  return MakeFunction(FunctionLibrary::NewName("beside"), builder, in, out);
}

std::unique_ptr<Executable> PlanFor(const FunctionPtr& f, int threads) {
  SetNumThreads(threads);
  auto e = Executable::Make(*f, nullptr);
  SetNumThreads(0);
  if (!e.ok()) Fail(e.status());
  return *std::move(e);
}

// Microseconds of one run, over about 3 ms.
double Round(Executable& e, const std::vector<Tensor>& inputs) {
  RunServices services;
  std::vector<Tensor> in, out;
  const auto begin = Clock::now();
  double us = 0;
  int runs = 0;
  while (us < 3000) {
    for (int i = 0; i < 4; ++i, ++runs) {
      in = inputs;
      Status s = e.Run(services, absl::MakeSpan(in), &out);
      if (!s.ok()) Fail(s);
    }
    us =
        std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  }
  return us / runs;
}

double seconds = 3;

void Report(const char* name, const std::vector<Shape>& args,
            const Body& body) {
  const FunctionPtr f = TraceOf(args, body);
  // A plan that is made for one thread has no groups; its kernels are cut over
  // all threads as ever.
  const auto alone = PlanFor(f, 1), beside = PlanFor(f, 0);
  std::vector<Tensor> in;
  for (const Shape& s : args) {
    Tensor t = *Tensor::Allocate(DType::kFloat, s);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.data<float>()[i] = static_cast<float>(i * 7 % 23 - 11) / 64;
    }
    in.push_back(std::move(t));
  }
  double best[2] = {1e9, 1e9};
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    best[0] = std::min(best[0], Round(*alone, in));
    best[1] = std::min(best[1], Round(*beside, in));
  }
  std::printf(
      "%-28s %9.1f us one by one %9.1f us  %5.2f x  (%d groups of %d)\n", name,
      best[0], best[1], best[0] / best[1], beside->num_side_groups(),
      beside->num_steps());
  std::fflush(stdout);
}

Value Dense(OpScope& s, const Value& x, const Value& w) {
  return s("Relu", {s("MatMul", {x, w})});
}

Body Products(int n) {
  return [n](OpScope& s, const Values& v) {
    Values out;
    for (int i = 0; i < n; ++i) {
      out.push_back(s("MatMul", {v[0], v[1 + i % (v.size() - 1)]}));
    }
    return out;
  };
}

void ReportProducts() {
  for (int64_t m : {4, 8, 16, 24, 32, 64, 128}) {
    char name[64];
    std::snprintf(name, sizeof name, "4 products [%d,256][256,256]",
                  static_cast<int>(m));
    Report(name, {{m, 256}, {256, 256}, {256, 256}, {256, 256}, {256, 256}},
           Products(4));
  }
  Report("2 products [16,256][256,256]", {{16, 256}, {256, 256}, {256, 256}},
         Products(2));
}

// Loss gradients with respect to all weights.
Values WithGradients(OpScope& s, const Values& weights,
                     const std::function<Value()>& loss) {
  Tape tape(/*persistent=*/false, /*watch_variables=*/false);
  for (const Value& w : weights) tape.Watch(w);
  tape.Start();
  Value y = loss();
  tape.Stop();
  auto grads = tape.Gradients({y}, weights, {});
  if (!grads.ok()) Fail(grads.status());
  Values out = {y};
  for (Gradient& g : *grads) out.push_back(Densify(s, g));
  return out;
}

void ReportModels() {
  const Shape x = {16, 256}, w = {256, 256};
  Report("two towers of 4", {x, x, w, w}, [](OpScope& s, const Values& v) {
    Value a = v[0], b = v[1];
    for (int i = 0; i < 4; ++i) {
      a = Dense(s, a, v[2]);
      b = Dense(s, b, v[3]);
    }
    return Values{s("AddV2", {a, b})};
  });
  Report("gradients of 4 layers", {x, w, w, w, w},
         [](OpScope& s, const Values& v) {
           return WithGradients(s, {v.begin() + 1, v.end()}, [&] {
             Value y = v[0];
             for (int i = 1; i <= 4; ++i) y = Dense(s, y, v[i]);
             return y;
           });
         });
  Report("gates of an LSTM", {{16, 128}, {16, 128}, {128, 128}},
         [](OpScope& s, const Values& v) {
           Values g;
           for (int i = 0; i < 4; ++i) {
             // (Scaled, as equal products would be made once.)
             Value w = s("Mul", {v[2], s.Scalar(DType::kFloat, 1 + i)});
             Value u = s("Mul", {v[2], s.Scalar(DType::kFloat, 9 + i)});
             g.push_back(
                 s("AddV2", {s("MatMul", {v[0], w}), s("MatMul", {v[1], u})}));
           }
           return g;
         });
}

void ReportConvolutions() {
  const std::vector<int64_t> ones(4, 1);
  auto conv = [&](OpScope& s, const Value& x, const Value& f) {
    return s("Relu",
             {s("Conv2D", {x, f}, {{"strides", ones}, {"padding", "SAME"}})});
  };
  const Shape f = {3, 3, 32, 32}, x = {1, 28, 28, 32};
  Report("4 convolutions 28x28x32", {x, f, f, f, f},
         [&](OpScope& s, const Values& v) {
           Values out;
           for (int i = 1; i <= 4; ++i) out.push_back(conv(s, v[0], v[i]));
           return out;
         });
  Report("gradients of 4 convolutions", {x, f, f, f, f},
         [&](OpScope& s, const Values& v) {
           return WithGradients(s, {v.begin() + 1, v.end()}, [&] {
             Value y = v[0];
             for (int i = 1; i <= 4; ++i) y = conv(s, y, v[i]);
             return y;
           });
         });
}

// Nothing to gain: nothing to lose.
void ReportOthers() {
  Report("4 layers", {{16, 256}, {256, 256}}, [](OpScope& s, const Values& v) {
    Value y = v[0];
    for (int i = 0; i < 4; ++i) y = Dense(s, y, v[1]);
    return Values{y};
  });
  Report("x + 1", {{2, 2}}, [](OpScope& s, const Values& v) {
    return Values{s("AddV2", {v[0], s.Scalar(DType::kFloat, 1)})};
  });
  Report("4 products [8,8][8,8]", {{8, 8}, {8, 8}, {8, 8}, {8, 8}, {8, 8}},
         Products(4));
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  if (argc > 1) headrace::seconds = std::atof(argv[1]);
  headrace::ReportProducts();
  headrace::ReportModels();
  headrace::ReportConvolutions();
  headrace::ReportOthers();
  return 0;
}
