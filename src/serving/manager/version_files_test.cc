#include "serving/manager/version_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <unistd.h>

#include "base/files/files.h"

namespace headrace::serving {
namespace {

TEST(ModelFiles, TheirBytesAreSummedUp) {
  const std::string folder = "ram://manager_files/1";
  std::string local;
  auto fs = FileSystemFor(folder, &local);
  ASSERT_TRUE(fs.ok());
  ASSERT_TRUE(CreateDirectories(*fs, local + "/variables/x").ok());
  ASSERT_TRUE(WriteFileAtomically(*fs, local + "/a", "12345").ok());
  ASSERT_TRUE(WriteFileAtomically(*fs, local + "/variables/x/b", "12").ok());
  const auto bytes = BytesBelow(folder);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, 7u);
  EXPECT_FALSE(BytesBelow("ram://manager_files/2").ok());
}

TEST(ModelFiles, TheEstimateIsAFifthMore) {
  EXPECT_EQ(EstimateOfMemory(0), 0u);
  EXPECT_EQ(EstimateOfMemory(1000), 1200u);
  EXPECT_EQ(EstimateOfMemory(UINT64_MAX), UINT64_MAX);
}

TEST(ModelFiles, LinksInACircleEnd) {
  const std::string folder =
      testing::TempDir() + "/manager_circle_" + std::to_string(getpid());
  ASSERT_TRUE(CreateDirectories(PosixFileSystem(), folder).ok());
  ASSERT_EQ(symlink(folder.c_str(), (folder + "/again").c_str()), 0);
  ASSERT_EQ(symlink("/nowhere/x", (folder + "/lost").c_str()), 0);
  EXPECT_TRUE(BytesBelow(folder).ok());
  DropFileCache(folder);
  unlink((folder + "/again").c_str());
  EXPECT_TRUE(DeleteRecursively(PosixFileSystem(), folder).ok());
}

#ifdef __linux__
// Such a file system has nowhere else to keep files.
bool IsInMemory(int fd) {
  struct statfs system;
  constexpr long kTmpfs = 0x01021994;  // of linux/magic.h
  return fstatfs(fd, &system) == 0 && system.f_type == kTmpfs;
}

TEST(ModelFiles, TheSystemForgetsThem) {
  const std::string folder =
      testing::TempDir() + "/manager_cache_" + std::to_string(getpid());
  const std::string path = folder + "/weights";
  constexpr size_t kSize = 64 << 12;
  FileSystem* fs = PosixFileSystem();
  ASSERT_TRUE(CreateDirectories(fs, folder).ok());
  ASSERT_TRUE(WriteFileAtomically(fs, path, std::string(kSize, 'x')).ok());
  const int fd = open(path.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  (void)fsync(fd);
  void* mapped = mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto cached = [&] {
    unsigned char pages[kSize >> 12] = {};
    EXPECT_EQ(mincore(mapped, kSize, pages), 0);
    int count = 0;
    for (const unsigned char p : pages) count += p & 1;
    return count;
  };
  ASSERT_TRUE(ReadWholeFile(fs, path).ok());
  EXPECT_GT(cached(), 0);
  const bool only_in_memory = IsInMemory(fd);
  munmap(mapped, kSize);  // what is mapped stays
  DropFileCache(folder);
  mapped = mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  if (!only_in_memory) {
    EXPECT_EQ(cached(), 0);
  }
  munmap(mapped, kSize);
  close(fd);
  EXPECT_TRUE(DeleteRecursively(fs, folder).ok());
}
#endif

}  // namespace
}  // namespace headrace::serving
