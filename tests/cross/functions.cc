// Functions of C++ that python/tests/function/test_named_functions.py calls by
// name, and checks that call those of Python. Loaded into a Python process, it
// finds the library in the Python module.
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "checks.h"

namespace cross {
namespace {

using Map = std::map<std::string, tf::Tensor>;
using tf::Tensor;

struct State {
  Tensor place, speed;
  static constexpr std::array kFields{"place", "speed"};
};

// One handle each, as names hold no functions.
std::vector<tf::Function>& Kept() {
  static auto* const kept = new std::vector<tf::Function>;
  return *kept;
}

template <typename F>
void Give(const std::string& name, F body, tf::FunctionOptions options = {}) {
  options.name = name.substr(name.rfind('.') + 1);
  const auto f = tf::function(std::move(body), std::move(options));
  Kept().push_back(f.untyped());
  tf::RegisterFunction(name, f);
}

void GiveFunctions() {
  Give("cpp.power",
       [](const Tensor& x, int n) {
         Tensor y = x;
         for (int i = 1; i < n; ++i) y = y * x;
         return y;
       },
       {.arg_names = {"x", "n"}});
  Give("cpp.move", [](const State& s, const std::vector<Tensor>& steps,
                      const std::optional<Tensor>& wind) {
    Tensor place = s.place;
    for (const Tensor& t : steps) place = place + s.speed * t;
    if (wind) place = place + *wind;
    return std::make_tuple(State{place, s.speed}, steps.size(),
                           std::optional<Tensor>());
  });
  Give("cpp.say", [](const std::string& text, bool twice, double number) {
    return std::map<std::string, std::string>{
        {"text", twice ? text + text : text},
        {"number", std::to_string(number)}};
  });
  const tf::Variable weight(Tensor(3.0f), "weight");
  Give("cpp.weigh", [weight](const Tensor& x) { return weight.value() * x; });
  Give("cpp.weight", [weight] { return weight; });
  Give("cpp.count", [](const tf::Variable& v) {
    v.assign_add(Tensor(1.0f));
    return v.value() * 10.0f;
  });
  Give("cpp.refuse", [](const Tensor&) -> Tensor {
    throw tf::Error(tf::ErrorCode::kFailedPrecondition, "not today");
  });
  Give("cpp.break", [](const Tensor&) -> Tensor {
    throw std::logic_error("broken \xc3\xbc");
  });
  Give("cpp.divide",
       [](const Tensor& a, const Tensor& b) { return tf::FloorDiv(a, b); });
  Give("cpp.sum", [](const Tensor& x) { return tf::Sum(x, Tensor(0)); },
       {.input_signature =
            std::vector<tf::TensorSpec>{{tf::DType::kFloat32, {-1}}}});
  // What is called by name inside is looked up while it is traced.
  Give("cpp.calls", [](const std::string& name, const Tensor& x) {
    return tf::FindFunction<Tensor(Tensor)>(name)(x) * 2.0f;
  });
  Give("cpp.down", [](const Tensor& x, int n) {
    if (n == 0) return x;
    return tf::FindFunction<Tensor(Tensor, int)>("py.down")(x + 1.0f, n - 1);
  });
}

// What the last check tells Python.
std::string& Told() {
  static auto* const told = new std::string;
  return *told;
}

const Check calls("calls", [] {
  const auto f = tf::FindFunction<Tensor(Tensor, int)>("py.power");
  CROSS_SAME(f(Tensor(2.0f), 3).item<float>(), 8);
  CROSS_SAME(f(Tensor(3.0f), 3).item<float>(), 27);
  CROSS_SAME(f.trace_count(), 1);
  CROSS_SAME(f(Tensor::From<float>({1, 2}), 2).vector<float>()[1], 4);
  CROSS_SAME(f.trace_count(), 2);
  CROSS_SAME(f.untyped().name(), "power");
  Has(f.explain_retraces().at(0), "trace 2: ");
});

const Check structures("structures", [] {
  using Result = std::tuple<State, std::vector<Tensor>, std::nullptr_t>;
  const auto f =
      tf::FindFunction<Result(State, std::vector<Tensor>, std::string, bool)>(
          "py.move");
  const Result r = f({Tensor(1.0f), Tensor(2.0f)},
                     {Tensor(10.0f), Tensor(20.0f)}, "ab", true);
  CROSS_SAME(std::get<0>(r).place.item<float>(), 61);
  CROSS_SAME(std::get<1>(r).size(), 2);
  // The results as another structure than they are.
  const tf::Function g = tf::FindFunction("py.move");
  const auto wrong = Thrown<tf::Error>([&] {
    g.Call<Tensor>(State{Tensor(1.0f), Tensor(2.0f)},
                   std::vector<Tensor>{Tensor(1.0f)}, "ab", true);
  });
  CROSS_SAME(static_cast<int>(wrong.code()), 3);
  Has(wrong.what(), "Function move: expected a tensor");
});

const Check gradients("gradients", [] {
  const auto f = tf::FindFunction<Tensor(Tensor)>("py.cubed");
  const Tensor x(2.0f);
  tf::GradientTape outer;
  outer.watch(x);
  Tensor slope;
  {
    tf::GradientTape tape;
    tape.watch(x);
    slope = tape.gradient(f(x), x);
  }
  CROSS_SAME(slope.item<float>(), 12);
  CROSS_SAME(outer.gradient(slope, x).item<float>(), 12);
});

const Check traced("traced", [] {
  const auto f = tf::FindFunction<Tensor(Tensor)>("py.cubed");
  const auto g = tf::function([&](const Tensor& x) {
    tf::GradientTape tape;
    tape.watch(x);
    const Tensor y = f(x) + 1.0f;
    return std::make_pair(y, tape.gradient(y, x));
  });
  for (const float x : {2.0f, 3.0f}) {
    const auto [y, slope] = g(Tensor(x));
    CROSS_SAME(y.item<float>(), x * x * x + 1);
    CROSS_SAME(slope.item<float>(), 3 * x * x);
  }
  CROSS_SAME(g.trace_count(), 1);
});

const Check variables("variables", [] {
  const tf::Variable v(Tensor(5.0f), "mine");
  const auto f = tf::FindFunction<Tensor(tf::Variable)>("py.count");
  CROSS_SAME(f(v).item<float>(), 60);
  CROSS_SAME(v.value().item<float>(), 6);
  tf::GradientTape tape;
  CROSS_SAME(tape.gradient(f(v), v).item<float>(), 10);
});

const Check concrete("concrete", [] {
  const tf::Function f = tf::FindFunction("py.power");
  const tf::ConcreteFunction c =
      f.GetConcreteFunction(tf::TensorSpec{tf::DType::kFloat32, {-1}}, 2);
  CROSS_SAME(c.Call(Tensor::From<float>({3, 4}), 2).vector<float>()[1], 16);
  CROSS_SAME(c.CallFlat({Tensor::From<float>({5})})[0].item<float>(), 25);
  CROSS_SAME(c.inputs()[0].shape.dims[0], -1);
  CROSS_SAME(c.arg_names()[0], "x");
  Has(c.signature(), "x: TensorSpec(shape=(None,)");
  Told() = c.name();
  Has(Thrown<tf::Error>([&] { c.Call(Tensor(1.0f), 2); }).what(), "x");
});

const Check errors("errors", [] {
  const tf::Function f = tf::FindFunction("py.raises");
  const auto code = [](const tf::Error& e) {
    return static_cast<int>(e.code());
  };
  const auto value =
      Thrown<tf::PythonError>([&] { f.Call("value", Tensor(1.0f)); });
  CROSS_SAME(code(value), 3);
  CROSS_SAME(value.type(), "ValueError");
  Has(value.what(), "ValueError: ");
  Has(value.what(), "a bad value");
  Has(value.traceback(), "test_named_functions.py");
  const auto own =
      Thrown<tf::PythonError>([&] { f.Call("own", Tensor(1.0f)); });
  CROSS_SAME(code(own), 2);
  Has(own.type(), "OwnError");
  const auto op = Thrown<tf::PythonError>([&] { f.Call("op", Tensor(1.0f)); });
  CROSS_SAME(code(op), 8);
  CROSS_SAME(std::string(op.what()), "too much");
  const auto stop =
      Thrown<tf::PythonError>([&] { f.Call("stop", Tensor(1.0f)); });
  CROSS_SAME(code(stop), 1);
  CROSS_SAME(stop.type(), "KeyboardInterrupt");
  // An op of the trace that fails, not Python's code.
  const auto ran = Thrown<tf::Error>([&] { f.Call("run", Tensor(-1.0f)); });
  CROSS_SAME(code(ran), 3);
  Has(ran.what(), "must be positive");
  Has(Thrown<tf::Error>([&] { f.Call(Tensor(1.0f)); }).what(), "TypeError");
});

const Check names("names", [] {
  Has(Thrown<tf::Error>([] { tf::FindFunction("py.nothing"); }).what(),
      "no function is registered as 'py.nothing'");
  const auto f = tf::function([](const Tensor& x) { return x; });
  CROSS_SAME(static_cast<int>(Thrown<tf::Error>([&] {
                                tf::RegisterFunction("py.power", f);
                              }).code()),
             6);
  // A handle of Python's function by a further name, which Python holds.
  tf::RegisterFunction("py.alias", tf::FindFunction("py.power"));
  CROSS_SAME(tf::FindFunction("py.alias").name(), "power");
  CROSS_SAME(tf::UnregisterFunction("py.alias"), true);
  CROSS_SAME(tf::UnregisterFunction("py.alias"), false);
});

std::unique_ptr<tf::Function>& Held() {
  static auto* const held = new std::unique_ptr<tf::Function>;
  return *held;
}
const Check hold("hold", [] {
  Held() = std::make_unique<tf::Function>(tf::FindFunction("py.held"));
});
const Check call_held("call_held", [] {
  CROSS_SAME(Held()->Call(Tensor(2.0f)).item<float>(), 4);
});
const Check drop_held("drop_held", [] { Held().reset(); });

// Threads that Python knows nothing of.
const Check threads("threads", [] {
  const auto f = tf::FindFunction<Tensor(Tensor, int)>("py.threaded");
  std::vector<std::thread> all;
  std::atomic<int> right{0}, taken{0};
  for (int t = 0; t < 8; ++t) {
    all.emplace_back([&, t] {
      const auto g = tf::function([](const Tensor& x) { return x; });
      try {
        tf::RegisterFunction("cpp.contested", g);
        ++taken;
      } catch (const tf::Error&) {
      }
      for (int i = 0; i < 20; ++i) {
        const float x = static_cast<float>(t * 20 + i);
        right += f(Tensor(x), 1 + i % 3).item<float>() == x + 1 + i % 3;
      }
      while (taken == 0) std::this_thread::yield();
      if (t > 0) return;
      tf::UnregisterFunction("cpp.contested");
    });
  }
  for (std::thread& t : all) t.join();
  CROSS_SAME(right.load(), 160);
  CROSS_SAME(f.trace_count(), 3);
});

}  // namespace

std::map<std::string, std::function<void()>>& Checks() {
  static auto* const checks = new std::map<std::string, std::function<void()>>;
  return *checks;
}

}  // namespace cross

extern "C" {

HR_API void cross_give_functions() { cross::GiveFunctions(); }

HR_API const char* cross_told() { return cross::Told().c_str(); }

// Runs a check; what went wrong goes into `error`, 0 is well.
HR_API int cross_check(const char* name, char* error, size_t size) {
  try {
    cross::Checks().at(name)();
    return 0;
  } catch (const std::exception& e) {
    std::strncpy(error, e.what(), size - 1);
    error[size - 1] = 0;
    return 1;
  }
}
}
