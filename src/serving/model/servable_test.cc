#include "serving/model/servable.h"

#include <gtest/gtest.h>

#include "serving/model/test_models.h"

namespace headrace::serving {
namespace {

TEST(Servable, LoadErrorsNameTheFolder) {
  const auto loaded = Servable::Load({"m", 1}, "/nowhere/1", {});
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.status().message().find("/nowhere/1"), std::string::npos);
}

StatusOr<Tensors> AskForOnes(Servable& servable, std::vector<int32_t> dims) {
  const Signature& signature = *servable.signature("");
  HR_ASSIGN_OR_RETURN(RunnerPtr runner,
                      servable.RunnerOf(signature, signature.AllOutputs()));
  StatusOr<Tensors> given = Internal("no answer");
  runner->Run(std::make_shared<Call>(), {Tensor::Vector<int32_t>(dims)},
              [&](StatusOr<Tensors> outputs) { given = std::move(outputs); });
  return given;
}

TEST(Servable, ATensorThatFitsNoMemoryFailsItsRequestAlone) {
  auto ones = Servable::Load({"ones", 1}, WriteModelOfOnes(), {});
  ASSERT_TRUE(ones.ok()) << ones.status();
  // 120 GB; more elements than there are numbers; a negative dimension.
  const Status huge = AskForOnes(**ones, {200'000, 150'000}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(huge)) << huge;
  EXPECT_FALSE(
      AskForOnes(**ones, {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(AskForOnes(**ones, {-1}).status()));
  EXPECT_TRUE(AskForOnes(**ones, {2, 3}).ok());
}

TEST(Servable, ARequestMayTakeSoMuchMemory) {
  ServableOptions options;
  options.max_request_memory_bytes = 1 << 20;
  auto ones = Servable::Load({"ones", 1}, WriteModelOfOnes(), options);
  ASSERT_TRUE(ones.ok()) << ones.status();
  for (int i = 0; i < 20; ++i) {  // what requests took is given back
    const Status s = AskForOnes(**ones, {1000, 1000}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
    EXPECT_NE(s.message().find("--max_request_memory_bytes"), std::string::npos)
        << s;
    EXPECT_TRUE(AskForOnes(**ones, {1000, 200}).ok());
  }
}

}  // namespace
}  // namespace headrace::serving
