#include "formats/table.h"

#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>
#include <unistd.h>

#include <map>

#include "absl/strings/str_format.h"
#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/snappy.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

using Entries = std::map<std::string, std::string>;

Entries SomeEntries(int n) {
  Entries entries = {{"", "header"}};
  for (int i = 0; i < n; ++i) {
    entries[absl::StrFormat("layer_%d/kernel/%05d", i % 7, i)] =
        std::string(i % 90, static_cast<char>(i));
  }
  entries[std::string("\xff\xff", 2)] = "last";
  entries[std::string("\0z", 2)] = "first";
  return entries;
}

std::string Written(const Entries& entries, size_t block_size) {
  MemoryFileSystem fs;
  auto file = *fs.OpenToWrite("t", WriteMode::kTruncate);
  TableWriter writer(file.get(), block_size);
  for (const auto& [key, value] : entries) {
    EXPECT_TRUE(writer.Add(key, value).ok());
  }
  EXPECT_TRUE(writer.Finish().ok());
  return *ReadWholeFile(&fs, "t");
}

StatusOr<Entries> Scanned(const std::string& bytes) {
  MemoryFileSystem fs;
  HR_RETURN_IF_ERROR(WriteFileAtomically(&fs, "t", bytes));
  HR_ASSIGN_OR_RETURN(auto file, fs.OpenToRead("t"));
  HR_ASSIGN_OR_RETURN(auto table, TableReader::Open(std::move(file)));
  Entries entries;
  HR_RETURN_IF_ERROR(table->Scan([&](StringView key, StringView value) {
    entries[std::string(key)] = std::string(value);
    return OkStatus();
  }));
  for (const auto& [key, value] : entries) {
    HR_ASSIGN_OR_RETURN(const std::string found, table->Get(key));
    EXPECT_EQ(found, value);
  }
  EXPECT_EQ(table->Get("absent").status().code(), absl::StatusCode::kNotFound);
  return entries;
}

TEST(Table, ComesBack) {
  for (int n : {0, 1, 15, 16, 17, 900}) {
    for (size_t block_size :
         {size_t{1}, size_t{300}, TableWriter::kBlockSize}) {
      const Entries entries = SomeEntries(n);
      EXPECT_EQ(*Scanned(Written(entries, block_size)), entries);
    }
  }
  EXPECT_EQ(*Scanned(Written({}, 10)), Entries());
}

TEST(Table, BytesAreLevelDbs) {
  const std::string path =
      JoinPath(testing::TempDir(), absl::StrCat("hr_table_", getpid()));
  for (size_t block_size : {size_t{100}, size_t{4096}, size_t{256 << 10}}) {
    const Entries entries = SomeEntries(1000);
    leveldb::Options options;
    options.block_size = block_size;
    options.compression = leveldb::kNoCompression;
    leveldb::WritableFile* file = nullptr;
    ASSERT_TRUE(leveldb::Env::Default()->NewWritableFile(path, &file).ok());
    {
      leveldb::TableBuilder builder(options, file);
      for (const auto& [key, value] : entries) builder.Add(key, value);
      ASSERT_TRUE(builder.Finish().ok());
    }
    ASSERT_TRUE(file->Close().ok());
    delete file;
    EXPECT_EQ(*ReadWholeFile(PosixFileSystem(), path),
              Written(entries, block_size));
  }
  EXPECT_TRUE(PosixFileSystem()->Delete(path).ok());
}

TEST(Table, ReadsPackedBlocks) {
  const std::string path =
      JoinPath(testing::TempDir(), absl::StrCat("hr_packed_", getpid()));
  Entries entries;
  for (int i = 0; i < 500; ++i) {
    entries[absl::StrFormat("key%03d", i)] = std::string(200, 'a' + i % 3);
  }
  leveldb::Options options;
  options.compression = leveldb::kSnappyCompression;
  leveldb::WritableFile* file = nullptr;
  ASSERT_TRUE(leveldb::Env::Default()->NewWritableFile(path, &file).ok());
  {
    leveldb::TableBuilder builder(options, file);
    for (const auto& [key, value] : entries) builder.Add(key, value);
    ASSERT_TRUE(builder.Finish().ok());
  }
  ASSERT_TRUE(file->Close().ok());
  delete file;
  const std::string bytes = *ReadWholeFile(PosixFileSystem(), path);
  EXPECT_LT(bytes.size(), 50000u);
  EXPECT_EQ(*Scanned(bytes), entries);
  EXPECT_TRUE(PosixFileSystem()->Delete(path).ok());
}

TEST(Table, KeysMustRise) {
  MemoryFileSystem fs;
  auto file = *fs.OpenToWrite("t", WriteMode::kTruncate);
  TableWriter writer(file.get());
  EXPECT_TRUE(writer.Add("b", "").ok());
  EXPECT_FALSE(writer.Add("b", "").ok());
  EXPECT_FALSE(writer.Add("a", "").ok());
  EXPECT_TRUE(writer.Add("c", "").ok());
}

TEST(Table, EveryTruncationIsFound) {
  const std::string bytes = Written(SomeEntries(60), 200);
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(Scanned(bytes.substr(0, n)).status().code(),
              absl::StatusCode::kDataLoss)
        << n;
  }
}

TEST(Table, EveryFlipIsFoundOrHarmless) {
  const Entries entries = SomeEntries(60);
  const std::string bytes = Written(entries, 200);
  // The metaindex's handle and block, and the padding, are not read.
  int harmless = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 0x41;
    const auto found = Scanned(damaged);
    if (found.ok()) {
      EXPECT_EQ(*found, entries) << i;
      ++harmless;
    } else {
      EXPECT_EQ(found.status().code(), absl::StatusCode::kDataLoss) << i;
    }
  }
  EXPECT_LE(harmless, 13 + 40);
}

TEST(Snappy, PacksAndUnpacks) {
  for (size_t size : {0, 1, 60, 65535, 65536, 65537, 200000}) {
    std::string bytes(size, 'x'), packed, out;
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7);
    SnappyPack(bytes, &packed);
    EXPECT_TRUE(SnappyUnpack(packed, &out));
    EXPECT_EQ(out, bytes);
  }
}

TEST(Snappy, RefusesDamage) {
  std::string out;
  EXPECT_TRUE(SnappyUnpack(std::string("\0", 1), &out));
  EXPECT_TRUE(SnappyUnpack("\x08\x04zy\x09\x02", &out));
  EXPECT_EQ(out,
            "zyzyzyz"
            "y");
  EXPECT_FALSE(SnappyUnpack("", &out));
  EXPECT_FALSE(SnappyUnpack("\xff\xff\xff\xff\x0f", &out));
  EXPECT_FALSE(SnappyUnpack("\x08\x04zy\x09\x03", &out));
  EXPECT_FALSE(SnappyUnpack("\x06\x04zy\x09\x02", &out));
  EXPECT_FALSE(SnappyUnpack("\x08\x04zy", &out));
}

}  // namespace
}  // namespace headrace
