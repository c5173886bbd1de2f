#include "serving/model/servable.h"

#include <gtest/gtest.h>

namespace headrace::serving {
namespace {

TEST(Servable, LoadErrorsNameTheFolder) {
  const auto loaded = Servable::Load({"m", 1}, "/nowhere/1", {});
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.status().message().find("/nowhere/1"), std::string::npos);
}

}  // namespace
}  // namespace headrace::serving
