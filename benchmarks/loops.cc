// Times the inner loops: nanoseconds an element on one thread, the least of
// several runs. Usage: loops [part of a name]. The environment's
// HEADRACE_CPU_LEVEL (v2, v3, v4) picks the instruction set.
#include "ops/math/loops/loops.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/allocator.h"
#include "base/random/random_fill.h"
#include "base/thread_pool.h"
#include "ops/array/transpose_loops.h"

namespace headrace {
namespace {

constexpr int kFloat = 1, kDouble = 2, kInt32 = 3, kHalf = 19, kBfloat16 = 14;
constexpr int64_t kSpan = 16 << 10;  // elements of a span, in cache
const char* wanted = "";

double Seconds(const std::function<void()>& f) {
  double best = 1e9;
  for (int i = 0; i < 9; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count());
  }
  return best;
}

void Report(const std::string& name, int64_t n,
            const std::function<void()>& f) {
  if (name.find(wanted) == std::string::npos) return;
  const int times = static_cast<int>(std::max<int64_t>(1, (1 << 20) / n));
  const double s = Seconds([&] {
                     for (int i = 0; i < times; ++i) f();
                   }) /
                   times;
  std::printf("%-32s %10.1f us %8.3f ns/element\n", name.c_str(), s * 1e6,
              s * 1e9 / n);
}

// Spans of random numbers in (0, 1), and room for a result.
struct Spans {
  explicit Spans(int64_t n) : a(n), b(n), y(2 * n) {
    FillUniform(Philox(1, 2), a.data(), n);
    FillUniform(Philox(3, 4), b.data(), n);
  }
  std::vector<float> a, b, y;
};

void Unary(Spans& s, const char* op, int dtype) {
  const LoopEntry* e = FindUnaryLoop(op, dtype);
  if (!e) return;
  std::vector<double> x(kSpan);
  FindCastLoop(kFloat, dtype)(s.a.data(), x.data(), kSpan);
  Report(std::string(op) + " type " + std::to_string(dtype), kSpan,
         [&] { e->unary(x.data(), s.y.data(), kSpan); });
}

void Binary(Spans& s, const char* op, int dtype, int kind) {
  const LoopEntry* e = FindBinaryLoop(op, dtype);
  if (!e) return;
  const int64_t n = kSpan;
  Report(std::string(op) + " type " + std::to_string(dtype) + " kind " +
             std::to_string(kind),
         n, [&] {
           const BinaryLoop run = e->binary;
           if (run) return run(s.a.data(), s.b.data(), s.y.data(), n, kind);
           e->checked(s.a.data(), s.b.data(), s.y.data(), n, kind);
         });
}

void Elementwise() {
  Spans s(2 * kSpan);
  for (const char* op :
       {"Exp",   "Expm1",     "Log",    "Log1p",    "Tanh",  "Sigmoid",
        "Erf",   "Sin",       "Cos",    "Softplus", "Elu",   "Relu",
        "Sqrt",  "Rsqrt",     "Neg",    "Tan",      "Asinh", "Erfc",
        "_Gelu", "_GeluTanh", "Lgamma", "Erfinv"}) {
    Unary(s, op, kFloat);
  }
  for (const char* op : {"Exp", "Log", "Tanh"}) {
    Unary(s, op, kDouble);
    Unary(s, op, kHalf);
    Unary(s, op, kBfloat16);
  }
  for (const char* op : {"AddV2", "Mul", "RealDiv", "Maximum", "FloorDiv",
                         "FloorMod", "Pow", "Less", "TanhGrad"}) {
    Binary(s, op, kFloat, 0);
    Binary(s, op, kFloat, 2);
  }
  for (const char* op : {"AddV2", "FloorDiv"}) Binary(s, op, kInt32, 0);
  const int64_t n = kSpan;
  for (int to : {kInt32, kHalf, kBfloat16, kDouble}) {
    UnaryLoop cast = FindCastLoop(kFloat, to);
    Report("Cast 1 to " + std::to_string(to), n,
           [&] { cast(s.a.data(), s.y.data(), n); });
  }
}

void Others() {
  constexpr int64_t kSide = 2048;
  Spans s(kSide * kSide);
  const TransposeLoop loop =
      AtActiveLevel([](auto level) { return FindTranspose<level>(4); });
  Report("transpose 2048 x 2048", kSide * kSide,
         [&] { loop(s.a.data(), kSide, s.y.data(), kSide, kSide, kSide); });
  Report("copy 2048 x 2048", kSide * kSide,
         [&] { std::memcpy(s.y.data(), s.a.data(), kSide * kSide * 4); });
  const Philox g(1, 2);
  const int64_t n = kSide * kSide;
  Report("random uniform", n, [&] { FillUniform(g, s.y.data(), n); });
  Report("random normal", n, [&] { FillNormal(g, s.y.data(), n); });
  Report("random truncated normal", n,
         [&] { FillTruncatedNormal(g, s.y.data(), n); });
}

void Plumbing() {
  std::vector<void*> blocks(200);
  Report("200 blocks of 1 KB", 200, [&] {
    for (void*& b : blocks) b = AllocateMemory(1024);
    for (void* b : blocks) FreeMemory(b, 1024);
  });
  Report("2 blocks of 64 MB", 2, [&] {
    for (int i = 0; i < 2; ++i) blocks[i] = AllocateMemory(64 << 20);
    for (int i = 0; i < 2; ++i) FreeMemory(blocks[i], 64 << 20);
  });
  Spans s(1 << 20);
  SetNumThreads(2);
  for (int64_t n : {4 << 10, 64 << 10, 1 << 20}) {
    Report("2 threads y=2x+1, " + std::to_string(n), n, [&] {
      ParallelFor(n, 0.3, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) s.y[i] = 2 * s.a[i] + 1;
      });
    });
  }
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  if (argc > 1) headrace::wanted = argv[1];
  headrace::SetNumThreads(1);
  headrace::Elementwise();
  headrace::Others();
  headrace::Plumbing();
}
