#include "base/files/file_system.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

// Every test runs on the machine's files and on those in memory.
class Files : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    fs_ = GetParam() ? PosixFileSystem() : &memory_;
    root_ = JoinPath(testing::TempDir(), absl::StrCat("hr_files_", getpid()));
    ASSERT_TRUE(CreateDirectories(fs_, root_).ok());
  }
  void TearDown() override { EXPECT_TRUE(DeleteRecursively(fs_, root_).ok()); }
  std::string Path(StringView name) { return JoinPath(root_, name); }
  absl::StatusCode Open(StringView name) {
    return fs_->OpenToRead(Path(name)).status().code();
  }

  MemoryFileSystem memory_;
  FileSystem* fs_;
  std::string root_;
};
INSTANTIATE_TEST_SUITE_P(Both, Files, testing::Bool());

TEST_P(Files, WritesAndReads) {
  auto out = *fs_->OpenToWrite(Path("f"), WriteMode::kTruncate);
  EXPECT_TRUE(out->Append("hello ").ok());
  EXPECT_TRUE(out->Append("world").ok());
  EXPECT_TRUE(out->WriteAt(0, "J").ok());
  EXPECT_TRUE(out->WriteAt(13, "!").ok());
  EXPECT_EQ(out->size(), 14u);
  EXPECT_TRUE(out->Sync().ok());
  EXPECT_TRUE(out->Close().ok());
  EXPECT_FALSE(out->Append("x").ok());
  const std::string want("Jello world\0\0!", 14);
  EXPECT_EQ(*ReadWholeFile(fs_, Path("f")), want);
  std::string loaded(13, 0);
  EXPECT_TRUE(LoadFile(fs_, Path("f"), absl::MakeSpan(loaded)).ok());
  EXPECT_EQ(loaded, want.substr(0, 13));
  loaded.resize(15);
  EXPECT_EQ(LoadFile(fs_, Path("f"), absl::MakeSpan(loaded)).code(),
            absl::StatusCode::kOutOfRange);
  auto in = *fs_->OpenToRead(Path("f"));
  EXPECT_EQ(in->size(), 14u);
  std::string some(5, 0);
  EXPECT_TRUE(in->Read(6, absl::MakeSpan(some)).ok());
  EXPECT_EQ(some, "world");
  EXPECT_EQ(in->Read(10, absl::MakeSpan(some)).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(in->Read(100, absl::MakeSpan(some)).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(fs_->Stat(Path("f"))->size, 14u);
}

TEST(PosixFiles, PipesAndDevicesAreNotRead) {
  const std::string pipe = testing::TempDir() + "/a_pipe";
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  FileSystem* const fs = PosixFileSystem();
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    EXPECT_EQ(fs->OpenToRead(path).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(*ReadWholeFile(fs, "/dev/null"), "");
  // Nobody reads, and it does not wait for one.
  EXPECT_FALSE(fs->OpenToWrite(pipe, WriteMode::kAppend).ok());
  auto null = *fs->OpenToWrite("/dev/null", WriteMode::kAppend);
  EXPECT_TRUE(null->Append("x").ok());
}

// A file that shrinks behind its reader's back.
class Shrinking : public MemoryFileSystem {
 public:
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenToRead(
      const std::string& path) override {
    HR_ASSIGN_OR_RETURN(auto file, MemoryFileSystem::OpenToRead(path));
    HR_RETURN_IF_ERROR(OpenToWrite(path, WriteMode::kTruncate).status());
    return file;
  }
};

TEST(LoadFile, AFileThatShrinksIsDataLoss) {
  Shrinking fs;
  auto out = *fs.OpenToWrite("/f", WriteMode::kTruncate);
  EXPECT_TRUE(out->Append(std::string(100, 'x')).ok());
  std::string bytes(100, 0);
  EXPECT_EQ(LoadFile(&fs, "/f", absl::MakeSpan(bytes)).code(),
            absl::StatusCode::kDataLoss);
}

TEST(PosixFiles, TheEnvironmentTellsWhetherToWaitForTheDisk) {
  // Neither of the two can be synced.
  FileSystem* fs = PosixFileSystem();
  auto out = *fs->OpenToWrite("/dev/null", WriteMode::kTruncate);
  const std::string nowhere = "/dev/null/nowhere";
  EXPECT_FALSE(out->Sync().ok());
  EXPECT_FALSE(fs->SyncDirectory(nowhere).ok());
  setenv("HEADRACE_SYNC", "0", 1);
  EXPECT_TRUE(out->Sync().ok());
  EXPECT_TRUE(fs->SyncDirectory(nowhere).ok());
  setenv("HEADRACE_SYNC", "1", 1);
  EXPECT_FALSE(out->Sync().ok());
  unsetenv("HEADRACE_SYNC");
}

TEST_P(Files, ReservingChangesNothing) {
  auto out = *fs_->OpenToWrite(Path("r"), WriteMode::kTruncate);
  out->Reserve(0, 1 << 20);
  out->Reserve(5, 0);
  out->Reserve(UINT64_MAX, 7);
  EXPECT_EQ(out->size(), 0u);
  EXPECT_TRUE(out->WriteAt(0, "abc").ok());
  EXPECT_TRUE(out->Close().ok());
  EXPECT_EQ(*ReadWholeFile(fs_, Path("r")), "abc");
}

// Every offset and length around a block, from memory at any address, beside
// plain writes of what lies between.
TEST_P(Files, WritingThroughTheCacheIsWriting) {
  constexpr uint64_t kBlock = WritableFile::kBlock;
  std::string all(64 * kBlock, 0);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<char>(i * 2654435761u >> 13);
  }
  for (const uint64_t first : {uint64_t{0}, uint64_t{1}, kBlock - 1, kBlock}) {
    for (const uint64_t size :
         {uint64_t{0}, uint64_t{5}, kBlock, 2 * kBlock - 1, 60 * kBlock + 7}) {
      auto out = *fs_->OpenToWrite(Path("t"), WriteMode::kTruncate);
      const StringView view = all;
      if (size % 2 == 0) out->Reserve(0, all.size());
      EXPECT_TRUE(out->WriteThrough(first, view.substr(first, size)).ok());
      EXPECT_TRUE(out->WriteAt(0, view.substr(0, first)).ok());
      const uint64_t end = first + size;
      EXPECT_TRUE(out->Append(view.substr(end)).ok());
      EXPECT_TRUE(out->Sync().ok());
      EXPECT_EQ(out->size(), all.size());
      EXPECT_TRUE(out->Close().ok());
      EXPECT_FALSE(out->WriteThrough(0, all).ok());
      EXPECT_TRUE(*ReadWholeFile(fs_, Path("t")) == all)
          << first << " " << size;
    }
  }
  auto out = *fs_->OpenToWrite(Path("t"), WriteMode::kTruncate);
  EXPECT_FALSE(out->WriteThrough(UINT64_MAX, "abc").ok());
  EXPECT_FALSE(out->WriteThrough(INT64_MAX - 1, "abc").ok());
}

TEST_P(Files, LargeFilesAreReplacedAndDeleted) {
  const std::string large(20 << 20, 'x');
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("large"), large).ok());
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("small"), "s").ok());
  EXPECT_TRUE(fs_->Rename(Path("small"), Path("large")).ok());
  EXPECT_EQ(*ReadWholeFile(fs_, Path("large")), "s");
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("large"), large).ok());
  EXPECT_TRUE(fs_->Delete(Path("large")).ok());
  EXPECT_EQ(Open("large"), absl::StatusCode::kNotFound);
}

TEST_P(Files, Modes) {
  (void)(*fs_->OpenToWrite(Path("f"), WriteMode::kCreateNew))->Append("a");
  EXPECT_EQ(fs_->OpenToWrite(Path("f"), WriteMode::kCreateNew).status().code(),
            absl::StatusCode::kAlreadyExists);
  (void)(*fs_->OpenToWrite(Path("f"), WriteMode::kAppend))->Append("b");
  EXPECT_EQ(*ReadWholeFile(fs_, Path("f")), "ab");
  (void)(*fs_->OpenToWrite(Path("f"), WriteMode::kTruncate))->Append("c");
  EXPECT_EQ(*ReadWholeFile(fs_, Path("f")), "c");
}

TEST_P(Files, ErrorsHaveCodesAndPaths) {
  EXPECT_EQ(Open("none"), absl::StatusCode::kNotFound);
  const Status status = fs_->Delete(Path("none"));
  EXPECT_EQ(status.message(),
            absl::StrCat(Path("none"), "; No such file or directory"));
  EXPECT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  EXPECT_EQ(Open("d"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fs_->CreateDirectory(Path("d")).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(WriteFileAtomically(fs_, Path("d/f"), "x").ok());
  EXPECT_EQ(fs_->DeleteDirectory(Path("d")).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fs_->List(Path("e")).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(Files, FoldersAndRenames) {
  ASSERT_TRUE(CreateDirectories(fs_, Path("a/b/c")).ok());
  EXPECT_TRUE(CreateDirectories(fs_, Path("a/b/c/")).ok());
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("a/b/f"), "1").ok());
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("a/b/f"), "2").ok());
  EXPECT_EQ(*fs_->List(Path("a/b")), (std::vector<std::string>{"c", "f"}));
  EXPECT_TRUE(fs_->Rename(Path("a/b"), Path("z")).ok());
  EXPECT_EQ(*ReadWholeFile(fs_, Path("z/f")), "2");
  EXPECT_TRUE(fs_->Stat(Path("z/c"))->is_directory);
  EXPECT_TRUE(CopyFile(fs_, Path("z/f"), fs_, Path("g")).ok());
  EXPECT_TRUE(fs_->Rename(Path("g"), Path("z/f")).ok());
  EXPECT_EQ(Open("g"), absl::StatusCode::kNotFound);
  EXPECT_TRUE(DeleteRecursively(fs_, Path("z")).ok());
  EXPECT_EQ(Open("z/f"), absl::StatusCode::kNotFound);
}

TEST_P(Files, Patterns) {
  for (const char* name : {"a-1.x", "a-2.x", "b-1.x", "d1/f", "d2/f"}) {
    ASSERT_TRUE(CreateDirectories(fs_, std::string(DirName(Path(name)))).ok());
    ASSERT_TRUE(WriteFileAtomically(fs_, Path(name), "").ok());
  }
  const auto count = [&](StringView pattern) {
    return MatchPaths(fs_, Path(pattern))->size();
  };
  EXPECT_EQ(count("a-?.x"), 2u);
  EXPECT_EQ(count("*"), 5u);
  EXPECT_EQ(count("[^a]-1*"), 1u);
  EXPECT_EQ(count("d*/f"), 2u);
  EXPECT_EQ(count("none*/f"), 0u);
  EXPECT_EQ(count("a-1.x"), 1u);
}

TEST(MatchesPattern, Cases) {
  EXPECT_TRUE(MatchesPattern("abcabd", "*ab?"));
  EXPECT_TRUE(MatchesPattern("", "**"));
  EXPECT_TRUE(MatchesPattern("a*b", "a\\*b"));
  EXPECT_FALSE(MatchesPattern("axb", "a\\*b"));
  EXPECT_TRUE(MatchesPattern("x]", "x[]]"));
  EXPECT_FALSE(MatchesPattern("x", "[x"));
  EXPECT_FALSE(MatchesPattern("b", "[!a-c]"));
  EXPECT_FALSE(MatchesPattern(std::string(50, 'a'), "*a*a*a*a*a*a*a*b"));
}

TEST(FileSystemFor, Schemes) {
  std::string local;
  EXPECT_EQ(*FileSystemFor("/a/b", &local), PosixFileSystem());
  EXPECT_EQ(*FileSystemFor("file:///a/b", &local), PosixFileSystem());
  EXPECT_EQ(local, "/a/b");
  FileSystem* ram = *FileSystemFor("ram://x/y", &local);
  EXPECT_TRUE(WriteFileAtomically(ram, local, "z").ok());
  EXPECT_EQ(*ReadWholeFile(ram, "ram://x/y"), "z");
  EXPECT_EQ(*ram->List("ram://x/"), std::vector<std::string>{"y"});
  EXPECT_EQ(FileSystemFor("s9://x", &local).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace headrace
