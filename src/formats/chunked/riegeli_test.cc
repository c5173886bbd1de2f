#include "formats/chunked/riegeli.h"

#include <gtest/gtest.h>

#include "base/coding.h"
#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/chunked/riegeli_layout.h"
#include "formats/snappy.h"

namespace headrace {
namespace {

std::string RiegeliBytes(const std::vector<std::string>& records,
                         std::vector<uint64_t>* places) {
  MemoryFileSystem fs;
  auto file = *fs.OpenToWrite("r", WriteMode::kTruncate);
  RiegeliWriter writer = *RiegeliWriter::Create(file.get());
  for (const std::string& r : records) places->push_back(*writer.Write(r));
  return *ReadWholeFile(&fs, "r");
}

// The signature and a chunk of three records, packed in some way.
std::string ThreeRecords(char packing) {
  std::vector<uint64_t> none;
  std::string sizes("\1\2\3"), values("abbccc");
  std::string data(1, packing);
  if (packing != riegeli::kPlain) {
    for (std::string* part : {&sizes, &values}) {
      std::string packed, block;
      SnappyPack(*part, &packed);
      PutVarint64(&block, part->size());
      *part = block + packed;
    }
  }
  PutVarint64(&data, sizes.size());
  data += sizes + values;
  std::string fields;
  PutFixed64(&fields, data.size());
  PutFixed64(&fields, riegeli::HashOf(data));
  PutFixed64(&fields, 'r' | 3 << 8);
  PutFixed64(&fields, 6);
  std::string chunk;
  PutFixed64(&chunk, riegeli::HashOf(fields));
  return RiegeliBytes({}, &none) + chunk + fields + data;
}

TEST(RiegeliTest, TheSignatureIsTheOneOfTheFormat) {
  std::vector<uint64_t> places;
  const std::string bytes = RiegeliBytes({}, &places);
  const unsigned char expected[kRiegeliHeadBytes] = {
      0x83, 0xaf, 0x70, 0xd1, 0x0d, 0x88, 0x4a, 0x3f, 0,    0,    0, 0,    0,
      0,    0,    0,    0x40, 0,    0,    0,    0,    0,    0,    0, 0x91, 0xba,
      0xc2, 0x3c, 0x92, 0x87, 0xe1, 0xa9, 0,    0,    0,    0,    0, 0,    0,
      0,    0xe1, 0x9f, 0x13, 0xc0, 0xe9, 0xb1, 0xc3, 0x72, 0x73, 0, 0,    0,
      0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0, 0};
  EXPECT_EQ(bytes, std::string(reinterpret_cast<const char*>(expected),
                               kRiegeliHeadBytes));
  EXPECT_TRUE(IsRiegeli(bytes));
  EXPECT_FALSE(IsRiegeli(std::string(kRiegeliHeadBytes, '\0')));
}

TEST(RiegeliTest, RecordsOfAllSizesAreReadAtTheirPlaces) {
  std::vector<std::string> records;
  std::vector<uint64_t> places;
  // Sizes that bring the end of a chunk to, before and behind a block's end.
  for (size_t size = 65536 - 64 - 100; size < 65536 - 64; ++size) {
    records.emplace_back(size, static_cast<char>(size));
    records.emplace_back(size % 7, 'x');
  }
  records.emplace_back(1000000, 'y');
  MemoryFileSystem fs;
  ASSERT_TRUE(
      WriteFileAtomically(&fs, "r", RiegeliBytes(records, &places)).ok());
  const auto file = *fs.OpenToRead("r");
  auto reader = RiegeliReader::Open(file.get());
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (size_t i = 0; i < records.size(); ++i) {
    const auto read = reader->Read(places[i]);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, records[i]) << i;
  }
  EXPECT_EQ(*reader->ReadLast(), records.back());
  EXPECT_TRUE(absl::IsNotFound(reader->Read(places[1] + 1).status()));
}

TEST(RiegeliTest, ChunksOfSeveralRecordsPlainAndPacked) {
  for (const char packing : {riegeli::kPlain, riegeli::kSnappy}) {
    MemoryFileSystem fs;
    ASSERT_TRUE(WriteFileAtomically(&fs, "r", ThreeRecords(packing)).ok());
    const auto file = *fs.OpenToRead("r");
    auto reader = RiegeliReader::Open(file.get());
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(*reader->Read(64), "a");
    EXPECT_EQ(*reader->Read(65), "bb");
    EXPECT_EQ(*reader->Read(66), "ccc");
    EXPECT_EQ(*reader->ReadLast(), "ccc");
    EXPECT_TRUE(absl::IsNotFound(reader->Read(67).status()));
    EXPECT_TRUE(absl::IsNotFound(reader->Read(63).status()));
  }
}

TEST(RiegeliTest, OtherPackingsAreUnimplementedAndNamed) {
  for (const char packing : {riegeli::kBrotli, riegeli::kZstd}) {
    MemoryFileSystem fs;
    ASSERT_TRUE(WriteFileAtomically(&fs, "r", ThreeRecords(packing)).ok());
    const auto file = *fs.OpenToRead("r");
    auto reader = RiegeliReader::Open(file.get());
    ASSERT_TRUE(reader.ok()) << reader.status();
    const Status s = reader->Read(64).status();
    EXPECT_TRUE(absl::IsUnimplemented(s)) << s;
    EXPECT_NE(s.message().find(packing == 'b' ? "Brotli" : "Zstd"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace headrace
