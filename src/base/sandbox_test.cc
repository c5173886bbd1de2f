#include "base/sandbox.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/allocator.h"
#include "base/files/file_system.h"
#include "base/files/files.h"
#include "base/thread_pool.h"
#include "base/threads.h"

namespace headrace {
namespace {

SandboxPtr BoxOf(StringView text) {
  return std::make_shared<Sandbox>(*SafetyPolicy::Parse(text), "the test");
}

TEST(SandboxTest, CountsBlocksUntilTheyAreFreed) {
  const SandboxPtr box = BoxOf("memory: 1 MiB");
  void* p = nullptr;
  {
    const SandboxScope scope(box);
    p = AllocateMemory(600'000);
    ASSERT_NE(p, nullptr);
    EXPECT_GE(box->memory(), 600'000);
    EXPECT_EQ(AllocateMemory(600'000), nullptr);
    EXPECT_TRUE(absl::IsResourceExhausted(CheckSandboxMemory(600'000)));
  }
  // Others are not concerned, and any thread may free.
  void* other = AllocateMemory(600'000);
  EXPECT_NE(other, nullptr);
  FreeMemory(other, 600'000);
  EXPECT_GE(box->memory(), 600'000);
  std::thread([p] { FreeMemory(p, 600'000); }).join();
  EXPECT_EQ(box->memory(), 0);
}

TEST(SandboxTest, MemoryOutlivesItsSandboxsOwner) {
  void* p = nullptr;
  {
    const SandboxScope scope(BoxOf(""));
    p = AllocateMemory(100);
  }
  FreeMemory(p, 100);
  EXPECT_EQ(sandbox::counted_blocks.load(), 0);
}

TEST(SandboxTest, ThoseAroundCountToo) {
  const SandboxPtr outer = BoxOf("memory: 1 MiB"), inner = BoxOf("");
  const SandboxScope a(outer);
  const SandboxScope b(inner);
  EXPECT_EQ(AllocateMemory(2 << 20), nullptr);
  EXPECT_EQ(inner->memory(), 0);
  void* p = AllocateMemory(1000);
  EXPECT_EQ(outer->memory(), inner->memory());
  FreeMemory(p, 1000);
}

TEST(SandboxTest, ThreadsJobsAndLoopsStayInside) {
  const SandboxPtr box = BoxOf("");
  const SandboxScope scope(box);
  std::atomic<int> inside{0}, outside{0};
  const auto count = [&] {
    (CurrentSandbox() == box ? inside : outside).fetch_add(1);
  };
  auto thread = StartThread(count);
  ASSERT_TRUE(thread.ok());
  thread->join();
  std::atomic<bool> done{false};
  Schedule([&] {
    count();
    done = true;
    done.notify_all();
  });
  done.wait(false);
  ParallelFor(64, 1e6, [&](int64_t, int64_t) { count(); });
  EXPECT_GE(inside.load(), 3);
  EXPECT_EQ(outside.load(), 0);
}

TEST(SandboxTest, ThreadsOfThePoolAreNotInside) {
  {
    const SandboxScope scope(BoxOf(""));
    ParallelFor(64, 1e6, [](int64_t, int64_t) {});
  }
  std::atomic<int> outside{0};
  ParallelFor(64, 1e6, [&](int64_t, int64_t) {
    if (!InSandbox()) outside.fetch_add(1);
  });
  EXPECT_GT(outside.load(), 0);
}

TEST(SandboxTest, CallsWithinEachOther) {
  const SandboxPtr box = BoxOf("recursion: 2");
  const SandboxCall one(box);
  EXPECT_TRUE(one.status().ok());
  {
    const SandboxCall two(box);
    EXPECT_TRUE(two.status().ok());
    const SandboxCall three(nullptr);
    EXPECT_TRUE(absl::IsResourceExhausted(three.status()));
  }
  const SandboxCall again(box);
  EXPECT_TRUE(again.status().ok());
}

TEST(SandboxTest, CallsEndInTime) {
  const SandboxCall call(BoxOf("time: 0.001"));
  Status s;
  while ((s = CheckStop()).ok()) {
  }
  const Status told = call.Told(s);
  EXPECT_TRUE(absl::IsDeadlineExceeded(told));
  EXPECT_NE(told.message().find("`time`"), StringView::npos);
}

TEST(SandboxTest, NodesAreCountedAndGivenBack) {
  Sandbox box(*SafetyPolicy::Parse("nodes: 10"), "the test");
  EXPECT_TRUE(box.TakeNodes(10).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(box.TakeNodes(1)));
  box.GiveNodes(1);
  EXPECT_TRUE(box.TakeNodes(1).ok());
}

class SandboxFilesTest : public testing::Test {
 protected:
  SandboxFilesTest() {
    std::filesystem::create_directories(model_ / "assets");
    std::ofstream(model_ / "assets" / "words") << "a";
    std::ofstream(folder_ / "secret") << "s";
    std::filesystem::create_symlink(folder_ / "secret",
                                    model_ / "assets" / "link");
  }
  ~SandboxFilesTest() override { std::filesystem::remove_all(folder_); }

  static Status Read(const std::string& path) {
    std::string local;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
    return ReadWholeFile(fs, local).status();
  }
  static Status Write(const std::string& path) {
    std::string local;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
    return fs->OpenToWrite(local, WriteMode::kTruncate).status();
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / "sandbox_files";
  const std::filesystem::path model_ = folder_ / "model";
};

TEST_F(SandboxFilesTest, OnlyWhatThePolicyPermits) {
  const std::string secret = folder_ / "secret";
  {
    const SandboxScope scope(BoxOf(""));
    EXPECT_TRUE(absl::IsPermissionDenied(Read(secret)));
    EXPECT_TRUE(absl::IsPermissionDenied(Read("file://" + secret)));
    EXPECT_TRUE(absl::IsPermissionDenied(Read("/nowhere")));
    EXPECT_TRUE(absl::IsPermissionDenied(Read("ram://x")));
    EXPECT_TRUE(absl::IsPermissionDenied(Write(secret)));
    EXPECT_TRUE(absl::IsPermissionDenied(PosixFileSystem()->Delete(secret)));
    EXPECT_TRUE(
        absl::IsPermissionDenied(PosixFileSystem()->List(folder_).status()));
    EXPECT_TRUE(
        absl::IsPermissionDenied(PosixFileSystem()->Stat(secret).status()));
  }
  {
    const SandboxScope scope(BoxOf("allow: reads"));
    EXPECT_TRUE(Read(secret).ok());
    EXPECT_TRUE(absl::IsPermissionDenied(Write(secret)));
  }
  const SandboxScope scope(BoxOf("allow: writes"));
  EXPECT_TRUE(absl::IsPermissionDenied(Read(secret)));
  EXPECT_TRUE(Write(folder_ / "new").ok());
}

TEST_F(SandboxFilesTest, AModelsOwn) {
  const SandboxPtr box = BoxOf("");
  const std::string words = model_ / "assets" / "words";
  EXPECT_TRUE(box->PermitFile(model_, words).ok());
  for (const char* name : {"assets/../../secret", "assets/link"}) {
    EXPECT_TRUE(
        absl::IsPermissionDenied(box->PermitFile(model_, model_ / name)))
        << name;
  }
  EXPECT_TRUE(absl::IsNotFound(box->PermitFile(model_, model_ / "none")));
  const SandboxScope scope(box);
  EXPECT_TRUE(Read(words).ok());
  EXPECT_TRUE(Read(model_ / "assets" / ".." / "assets" / "words").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Write(words)));
  EXPECT_TRUE(absl::IsPermissionDenied(Read(model_ / "assets" / "link")));
  EXPECT_TRUE(absl::IsPermissionDenied(Read(words + std::string("\0/x", 3))));
  {
    const auto permit = box->PermitPrefix(model_, "assets", "wo");
    EXPECT_TRUE(box->has_files());
  }
  EXPECT_EQ(box->PermitPrefix(model_, "..", "secret"), nullptr);
}

}  // namespace
}  // namespace headrace
