// What the engine itself costs: a plan's run, a call, a chain, a loop.
#include <chrono>
#include <cstdio>
#include <functional>

#include "autodiff/function_gradient.h"
#include "graph/builder.h"
#include "op/function_caller.h"
#include "op/resource.h"
#include "runtime/executable.h"

namespace headrace {
namespace {

using Body = std::function<std::vector<Value>(OpScope&, std::vector<Value>&)>;

FunctionPtr Trace(std::vector<std::pair<DType, Shape>> args, const Body& body) {
  GraphBuilder builder(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&builder);
  std::vector<Value> in;
  for (auto& [d, s] : args) {
    in.push_back(*builder.AddPlaceholder("x", d, s, nullptr));
  }
  OpScope s;
  std::vector<Value> out = body(s, in);
  if (!s.ok()) {
    std::printf("%s\n", std::string(s.status().message()).c_str());
    std::exit(1);
  }
  for (Value& v : out) v = *builder.Import(v);
  FunctionPtr f =
      MakeFunction(FunctionLibrary::NewName("bench"), builder, in, out);
  if (!GlobalFunctions().Add(f).ok()) std::exit(1);
  return f;
}

// Best microseconds a call of several rounds.
double Best(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  call();
  double best = 1e9;
  for (int round = 0; round < 7; ++round) {
    int n = 0;
    auto start = Clock::now();
    double us = 0;
    while (us < 30000) {
      for (int i = 0; i < 10; ++i) call();
      n += 10;
      us = std::chrono::duration<double, std::micro>(Clock::now() - start)
               .count();
    }
    best = std::min(best, us / n);
  }
  return best;
}

void Report(const char* name, const FunctionPtr& f,
            const std::vector<Tensor>& inputs) {
  auto e = ExecutableOf(f, nullptr);
  if (!e.ok()) {
    std::printf("%s: %s\n", name, e.status().ToString().c_str());
    return;
  }
  RunServices services;
  services.resources = &DefaultResources();
  services.functions = DefaultFunctionCaller();
  std::vector<Tensor> in, out;
  double us = Best([&] {
    in = inputs;
    if (!(*e)->Run(services, absl::MakeSpan(in), &out).ok()) std::exit(1);
  });
  std::printf("%-16s %8.3f us  (%d steps)\n", name, us, (*e)->num_steps());
}

int Main() {
  const DType f32 = DType::kFloat;
  Tensor x4 = Tensor::Vector<float>({1, 2, 3, 4});
  Report(
      "identity_plus_1",
      Trace({{f32, {2, 2}}},
            [](OpScope& s, auto& in) {
              return std::vector<Value>{s("AddV2", {in[0], s.Scalar(f32, 1)})};
            }),
      {x4.WithShape({2, 2})});
  Report("chain_1000",
         Trace({{f32, {4}}},
               [](OpScope& s, auto& in) {
                 Value x = in[0];
                 for (int i = 0; i < 500; ++i) {
                   x = s("Mul", {x, s.Scalar(f32, 1.0001)});
                   x = s("AddV2", {x, s.Scalar(f32, 0.5)});
                 }
                 return std::vector<Value>{x};
               }),
         {x4});
  std::vector<std::pair<DType, Shape>> vars = {{DType::kInt32, {}}, {f32, {4}}};
  FunctionPtr cond = Trace(vars, [](OpScope& s, auto& in) {
    return std::vector<Value>{s("Less", {in[0], s.Int32(1000)})};
  });
  FunctionPtr body = Trace(vars, [](OpScope& s, auto& in) {
    Value y = s("AddV2",
                {s("Mul", {in[1], s.Scalar(f32, 1.0001)}), s.Scalar(f32, 0.5)});
    return std::vector<Value>{s("AddV2", {in[0], s.Int32(1)}), y};
  });
  Report("while_1000",
         Trace({{f32, {4}}},
               [&](OpScope& s, auto& in) {
                 ValueList o = s.All("StatelessWhile", {s.Int32(0), in[0]},
                                     {{"cond", FuncRef{cond->name, nullptr}},
                                      {"body", FuncRef{body->name, nullptr}}});
                 return std::vector<Value>{o[1]};
               }),
         {x4});
  return 0;
}

}  // namespace
}  // namespace headrace

int main() { return headrace::Main(); }
