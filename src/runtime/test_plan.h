// Plans against the ops by themselves, for the tests of the passes.
#pragma once

#include <cstring>

#include "base/thread_pool.h"
#include "eager/eager_emitter.h"
#include "graph/test_function.h"
#include "runtime/executable.h"

namespace headrace {

// Multiples of 1/8 whose products and sums of thousands are exact.
inline Tensor Numbers(Shape shape, int seed = 7) {
  Tensor t = *Tensor::Allocate(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>((i * seed + seed) % 23 - 11) / 8;
  }
  return t;
}

// Runs `body` as a plan, thrice and with 1 to 4 threads, and op by op; the
// results must agree to the last bit. The plan's text.
inline std::string Compare(const Body& body, std::vector<Tensor> in) {
  FunctionPtr f = Traced("fused", TypesOf(in), body);
  auto e = Executable::Make(*f, nullptr);
  EXPECT_TRUE(e.ok()) << e.status();
  Values values;
  for (const Tensor& t : in) values.push_back(Value(t));
  OpScope s;
  Values want = body(s, values);
  EXPECT_TRUE(s.ok()) << s.status();
  RunServices services;
  for (int threads : {1, 2, 4}) {
    SetNumThreads(threads);
    std::vector<Tensor> copy = in, out;
    Status status = (*e)->Run(services, absl::MakeSpan(copy), &out);
    EXPECT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < want.size() && i < out.size(); ++i) {
      const Tensor& t = want[i].tensor();
      EXPECT_EQ(out[i].shape(), t.shape());
      EXPECT_EQ(std::memcmp(out[i].raw(), t.raw(), t.bytes()), 0)
          << "result " << i << " with " << threads << " threads";
    }
  }
  SetNumThreads(0);
  return (*e)->DebugString();
}

inline int Lines(const std::string& plan) {
  return static_cast<int>(std::count(plan.begin(), plan.end(), '\n'));
}

}  // namespace headrace
