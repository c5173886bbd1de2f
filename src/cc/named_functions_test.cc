// Functions by name, in C++ alone.
#include "headrace/named_functions.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

tf::ErrorCode CodeThrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const tf::Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return tf::ErrorCode::kUnknown;
}

const auto add_one = [](const tf::Tensor& x) { return x + 1.0f; };

TEST(NamedFunctions, AreFoundByName) {
  const auto f = tf::function(add_one);
  tf::RegisterFunction("test.f", f);
  tf::RegisterFunction("test.g", f);  // a second name
  tf::RegisterFunction("test.f", f);  // the same again
  const auto found = tf::FindFunction<tf::Tensor(tf::Tensor)>("test.f");
  EXPECT_EQ(found(tf::Tensor(2.0f)).item<float>(), 3);
  EXPECT_EQ(f(tf::Tensor(3.0f)).item<float>(), 4);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(found.GetConcreteFunction(tf::Tensor(0.0f)).name(),
            f.GetConcreteFunction(tf::Tensor(0.0f)).name());
  const std::vector<std::string> names = tf::RegisteredFunctions();
  EXPECT_EQ(std::count(names.begin(), names.end(), "test.g"), 1);
  EXPECT_TRUE(tf::UnregisterFunction("test.g"));
  EXPECT_FALSE(tf::UnregisterFunction("test.g"));
}

TEST(NamedFunctions, NamesHoldNoFunction) {
  auto f = std::make_unique<tf::TracedFunction<tf::Tensor(tf::Tensor)>>(
      tf::function(add_one));
  tf::RegisterFunction("test.dying", *f);
  const auto other = tf::function(add_one);
  EXPECT_EQ(CodeThrown([&] { tf::RegisterFunction("test.dying", other); }),
            tf::ErrorCode::kAlreadyExists);
  auto handle = std::make_unique<tf::Function>(tf::FindFunction("test.dying"));
  f.reset();
  EXPECT_EQ(tf::FindFunction("test.dying").name(), "f");
  handle.reset();
  EXPECT_EQ(CodeThrown([] { tf::FindFunction("test.dying"); }),
            tf::ErrorCode::kNotFound);
  tf::RegisterFunction("test.dying", other);
  EXPECT_TRUE(tf::UnregisterFunction("test.dying"));
}

TEST(NamedFunctions, RefusesWhatIsNoNameAndNoFunction) {
  const auto f = tf::function(add_one);
  EXPECT_EQ(CodeThrown([&] { tf::RegisterFunction("", f); }),
            tf::ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeThrown([] { tf::FindFunction("test.nobody"); }),
            tf::ErrorCode::kNotFound);
  tf::Function moved = f;
  const tf::Function taken = std::move(moved);
  EXPECT_EQ(CodeThrown([&] { tf::RegisterFunction("test.f", moved); }),
            tf::ErrorCode::kInvalidArgument);
}

TEST(NamedFunctions, OneOfManyThreadsGetsAName) {
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<std::thread> threads;
    std::atomic<int> taken{0}, done{0};
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto f = tf::function(add_one);
        try {
          tf::RegisterFunction("test.contested", f);
          ++taken;
        } catch (const tf::Error& e) {
          EXPECT_EQ(e.code(), tf::ErrorCode::kAlreadyExists);
        }
        ++done;
        while (done < 8) std::this_thread::yield();  // all hold theirs
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(taken.load(), 1);
  }
}

}  // namespace
