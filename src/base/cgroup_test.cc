#include "base/cgroup.h"

#include <filesystem>
#include <fstream>

#include "base/memory_guard.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

constexpr int64_t kMB = 1 << 20;

// A tree of groups like the system's.
class FakeGroups : public testing::Test {
 protected:
  FakeGroups() {
    places_.root = testing::TempDir() + "/cgroup_test";
    std::filesystem::remove_all(places_.root);
    places_.self = places_.root + "/self";
  }
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = places_.root + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  CgroupPlaces places_;
};

TEST_F(FakeGroups, NoneIsNoLimit) {
  EXPECT_EQ(CgroupMemoryLeft(places_), kNoMemoryLimit);
  EXPECT_EQ(CgroupCpus(places_), std::numeric_limits<double>::infinity());
  Write("self", "0::/a/b\nnonsense\n3:memory\n");
  EXPECT_EQ(CgroupMemoryLeft(places_), kNoMemoryLimit);
}

TEST_F(FakeGroups, TheLeastOfNestedGroupsHoldsV2) {
  Write("self", "0::/a/b\n");
  Write("a/cpu.max", "150000 100000\n");
  Write("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCpus(places_), 1.5);
  Write("a/b/memory.max", "max\n");
  EXPECT_EQ(CgroupMemoryLeft(places_), kNoMemoryLimit);
  const auto bytes = [](int64_t mb) { return std::to_string(mb * kMB); };
  Write("a/memory.max", bytes(160));
  Write("a/memory.current", bytes(100));
  Write("a/memory.swap.max", "0\n");
  // 10 MB, a sixteenth, stay free; pages of files count as free.
  EXPECT_EQ(CgroupMemoryLeft(places_), 50 * kMB);
  Write("a/memory.stat", "anon 7\nactive_file " + bytes(8) +
                             "\ninactive_file " + bytes(4) + "\nshmem 9\n");
  EXPECT_EQ(CgroupMemoryLeft(places_), 62 * kMB);
  Write("a/b/memory.max", bytes(16));
  Write("a/b/memory.current", bytes(20));
  Write("a/b/memory.swap.max", "0\n");
  EXPECT_EQ(CgroupMemoryLeft(places_), -5 * kMB);
}

TEST_F(FakeGroups, V1) {
  Write("self", "4:cpu,cpuacct:/x\n3:memory:/x/y\n1:name=systemd:/z\n");
  Write("cpu/x/cpu.cfs_quota_us", "-1");
  Write("cpu/x/cpu.cfs_period_us", "100000");
  Write("cpu/cpu.cfs_quota_us", "50000");
  Write("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(CgroupCpus(places_), 0.5);
  Write("memory/x/y/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(CgroupMemoryLeft(places_), kNoMemoryLimit);
  // Swap would be added, but for the limit of both.
  Write("memory/x/memory.limit_in_bytes", std::to_string(1600 * kMB));
  Write("memory/x/memory.usage_in_bytes", std::to_string(1000 * kMB));
  Write("memory/x/memory.memsw.limit_in_bytes", std::to_string(1600 * kMB));
  Write("memory/x/memory.memsw.usage_in_bytes", std::to_string(1000 * kMB));
  Write("memory/x/memory.stat", "inactive_file 5\ntotal_inactive_file " +
                                    std::to_string(100 * kMB) + "\n");
  EXPECT_EQ(CgroupMemoryLeft(places_), (600 + 100 - 32) * kMB);
}

TEST(MemoryGuard, LetsSmallAndOrdinaryMemoryPass) {
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(MayTakeMemory(100000));
  EXPECT_TRUE(MayTakeMemory(1 << 20));
}

}  // namespace
}  // namespace headrace
