// Checkpoints replaced while every single call to the file system fails, or the
// process dies there.
#include "formats/checkpoint_install.h"

#include <climits>
#include <thread>

#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/checkpoint_reader.h"
#include "formats/checkpoint_writer.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

// Passes on to another file system, until call number `fails_at` of those that
// change something: that one fails, and when `dies` all later ones too.
class FailingFileSystem : public FileSystem {
 public:
  FailingFileSystem(FileSystem* to, int fails_at, bool dies)
      : to_(to), fails_at_(fails_at), dies_(dies) {}

  int calls() const { return calls_; }
  int syncs() const { return syncs_; }

  Status Change() {
    const int call = calls_++;
    const bool fails = dies_ ? call >= fails_at_ : call == fails_at_;
    return fails ? ResourceExhausted("no space left") : OkStatus();
  }

  StatusOr<std::unique_ptr<RandomAccessFile>> OpenToRead(
      const std::string& path) override {
    return to_->OpenToRead(path);
  }
  StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path,
                                                      WriteMode mode) override {
    HR_RETURN_IF_ERROR(Change());
    HR_ASSIGN_OR_RETURN(auto file, to_->OpenToWrite(path, mode));
    return std::make_unique<Writer>(this, std::move(file));
  }
  StatusOr<FileStat> Stat(const std::string& path) override {
    return to_->Stat(path);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    HR_RETURN_IF_ERROR(Change());
    return to_->Rename(from, to);
  }
  Status Delete(const std::string& path) override {
    HR_RETURN_IF_ERROR(Change());
    return to_->Delete(path);
  }
  Status CreateDirectory(const std::string& path) override {
    HR_RETURN_IF_ERROR(Change());
    return to_->CreateDirectory(path);
  }
  Status DeleteDirectory(const std::string& path) override {
    HR_RETURN_IF_ERROR(Change());
    return to_->DeleteDirectory(path);
  }
  StatusOr<std::vector<std::string>> List(const std::string& path) override {
    return to_->List(path);
  }
  Status SyncDirectory(const std::string& path) override {
    ++syncs_;
    HR_RETURN_IF_ERROR(Change());
    return to_->SyncDirectory(path);
  }

 private:
  class Writer : public WritableFile {
   public:
    Writer(FailingFileSystem* fs, std::unique_ptr<WritableFile> to)
        : fs_(fs), to_(std::move(to)) {}
    Status Append(StringView data) override {
      HR_RETURN_IF_ERROR(fs_->Change());
      return to_->Append(data);
    }
    Status WriteAt(uint64_t offset, StringView data) override {
      HR_RETURN_IF_ERROR(fs_->Change());
      return to_->WriteAt(offset, data);
    }
    Status Sync() override {
      ++fs_->syncs_;
      HR_RETURN_IF_ERROR(fs_->Change());
      return to_->Sync();
    }
    uint64_t size() const override { return to_->size(); }
    Status Close() override {
      HR_RETURN_IF_ERROR(fs_->Change());
      return to_->Close();
    }

   private:
    FailingFileSystem* const fs_;
    const std::unique_ptr<WritableFile> to_;
  };

  FileSystem* const to_;
  const int fails_at_;
  const bool dies_;
  int calls_ = 0, syncs_ = 0;
};

// Writes ten tensors whose elements are all `value`, in `shards` files.
Status Save(FileSystem* fs, int64_t value, int shards, bool sync = true) {
  const std::vector<int64_t> elements(100, value);
  const auto bytes =
      absl::MakeConstSpan(reinterpret_cast<const char*>(elements.data()), 800);
  CheckpointWriter::Options options;
  options.sync = sync;
  std::vector<std::string> parts;
  for (int shard = 0; shard < shards; ++shard) {
    parts.push_back(shards == 1 ? "f/c" : TemporaryNameFor("f/c"));
    HR_ASSIGN_OR_RETURN(auto writer,
                        CheckpointWriter::Create(fs, parts.back(), options));
    for (int i = shard; i < 10; i += shards) {
      HR_RETURN_IF_ERROR(writer->Add(absl::StrCat("t", i), tensorflow::DT_INT64,
                                     {100}, bytes));
    }
    HR_RETURN_IF_ERROR(writer->Finish());
  }
  return shards == 1 ? OkStatus()
                     : MergeCheckpoints(fs, parts, "f/c", false, sync);
}

// The one value of all elements.
StatusOr<int64_t> Load(FileSystem* fs) {
  HR_ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(fs, "f/c"));
  std::vector<int64_t> all;
  for (int i = 0; i < 10; ++i) {
    std::vector<int64_t> elements(100);
    HR_RETURN_IF_ERROR(reader->Read(
        absl::StrCat("t", i),
        absl::MakeSpan(reinterpret_cast<char*>(elements.data()), 800)));
    all.insert(all.end(), elements.begin(), elements.end());
  }
  for (const int64_t v : all) {
    if (v != all[0]) return DataLoss("a mixture");
  }
  return all[0];
}

std::vector<std::string> FilesOf(int shards) {
  std::vector<std::string> names;
  for (int i = 0; i < shards; ++i) {
    names.push_back(CheckpointDataPath("c", i, shards));
  }
  names.push_back("c.index");
  return names;
}

class Replace : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(Replace, EveryCallMayFail) {
  const auto [before, after] = GetParam();
  for (const bool dies : {false, true}) {
    int calls = 1;
    for (int fails_at = 0; fails_at < calls; ++fails_at) {
      MemoryFileSystem fs;
      ASSERT_TRUE(CreateDirectories(&fs, "f").ok());
      ASSERT_TRUE(Save(&fs, 1, before).ok());
      FailingFileSystem failing(&fs, fails_at, dies);
      const Status saved = Save(&failing, 2, after);
      calls = failing.calls() + 1;
      const auto value = Load(&fs);
      ASSERT_TRUE(value.ok()) << value.status() << " at call " << fails_at;
      if (saved.ok()) {
        EXPECT_EQ(*value, 2);
      }
      // Whatever was left behind, the next save puts it right.
      ASSERT_TRUE(Save(&fs, 3, after).ok());
      EXPECT_EQ(*Load(&fs), 3);
      // Of several parts, Save above leaves those written before the error.
      if (!dies && *value == 1 && after == 1) {
        EXPECT_EQ(*fs.List("f"), FilesOf(after)) << "at call " << fails_at;
      }
    }
    EXPECT_GT(calls, 8);
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, Replace,
                         testing::Values(std::pair(1, 1), std::pair(1, 2),
                                         std::pair(2, 1), std::pair(2, 2)));

TEST(InstallCheckpoint, SyncsOnlyWhenAsked) {
  for (const int shards : {1, 3}) {
    MemoryFileSystem memory;
    FailingFileSystem fs(&memory, INT_MAX, false);
    ASSERT_TRUE(CreateDirectories(&fs, "f").ok());
    ASSERT_TRUE(Save(&fs, 1, shards, /*sync=*/false).ok());
    ASSERT_TRUE(Save(&fs, 2, shards, /*sync=*/false).ok());
    EXPECT_EQ(fs.syncs(), 0) << shards;
    ASSERT_TRUE(Save(&fs, 3, shards).ok());
    EXPECT_GT(fs.syncs(), 3) << shards;
  }
}

// Whoever is last, all of one of them is there, and nothing else.
TEST(InstallCheckpoint, TwoMaySaveOnePrefixAtOnce) {
  MemoryFileSystem fs;
  ASSERT_TRUE(CreateDirectories(&fs, "f").ok());
  for (const int shards : {1, 2}) {
    std::vector<Status> statuses(2);
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (int k = 0; k < 50; ++k) statuses[t].Update(Save(&fs, t, shards));
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(statuses[0].ok()) << statuses[0];
    EXPECT_TRUE(statuses[1].ok()) << statuses[1];
    const auto value = Load(&fs);
    EXPECT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*fs.List("f"), FilesOf(shards));
  }
}

TEST(InstallCheckpoint, LeavesTheUsualFiles) {
  MemoryFileSystem fs;
  ASSERT_TRUE(CreateDirectories(&fs, "f").ok());
  for (const int shards : {1, 1, 2, 2, 3, 1}) {
    ASSERT_TRUE(Save(&fs, shards, shards).ok());
    EXPECT_EQ(*fs.List("f"), FilesOf(shards));
    EXPECT_EQ(*Load(&fs), shards);
  }
}

}  // namespace
}  // namespace headrace
