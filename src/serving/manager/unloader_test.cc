#include "serving/manager/unloader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace headrace::serving {
namespace {

StatusOr<ServablePtr> SmallModel() {
  return Servable::Load({"m", 1}, HR_GOLDEN_DIR "/saved_models/plain", {});
}

TEST(ModelUnloader, FreesOnAThreadOfItsOwnOnceNobodyHoldsIt) {
  auto unloader = Unloader::Start(1);
  ASSERT_TRUE(unloader.ok());
  auto model = SmallModel();
  ASSERT_TRUE(model.ok()) << model.status();
  const std::weak_ptr<Servable> watched = *model;
  std::atomic<bool> freed{false};
  std::thread::id freed_by;
  ServablePtr handle = (*unloader)->Wrap(*std::move(model), [&] {
    freed_by = std::this_thread::get_id();
    freed = true;
  });
  ServablePtr held = handle;
  handle = nullptr;
  EXPECT_EQ(held->id().name, "m");
  EXPECT_FALSE(watched.expired());
  held = nullptr;
  while (!freed) std::this_thread::yield();
  EXPECT_TRUE(watched.expired());
  EXPECT_NE(freed_by, std::this_thread::get_id());
}

TEST(ModelUnloader, FreesWhatWaitsBeforeItStops) {
  auto unloader = Unloader::Start(2);
  ASSERT_TRUE(unloader.ok());
  std::atomic<int> freed{0};
  ServablePtr held;
  for (int i = 0; i < 3; ++i) {
    auto model = SmallModel();
    ASSERT_TRUE(model.ok());
    held = (*unloader)->Wrap(*std::move(model), [&] { ++freed; });
  }
  (*unloader)->Stop();
  EXPECT_EQ(freed, 2);
  *unloader = nullptr;
  held = nullptr;  // freed here, and nobody is told
  EXPECT_EQ(freed, 2);
}

}  // namespace
}  // namespace headrace::serving
