#include "formats/records.h"

#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/events.h"
#include "gtest/gtest.h"
#include "tensorflow/core/util/event.pb.h"

namespace headrace {
namespace {

std::vector<std::string> GoldenRecords() {
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes.push_back(static_cast<char>(i));
  return {"",
          "a",
          "hello world",
          all_bytes,
          std::string(70000, 'x'),
          "ünïcode",
          std::string(5, '\0')};
}

std::string Golden(StringView name) {
  return absl::StrCat(HR_GOLDEN_DIR, "/records/", name);
}

StatusOr<std::vector<std::string>> ReadRecords(const std::string& bytes,
                                               Compression compression) {
  MemoryFileSystem fs;
  HR_RETURN_IF_ERROR(WriteFileAtomically(&fs, "r", bytes));
  HR_ASSIGN_OR_RETURN(const auto file, fs.OpenToRead("r"));
  RecordReader reader(file.get(), compression);
  std::vector<std::string> out;
  for (std::string record;;) {
    HR_ASSIGN_OR_RETURN(const bool more, reader.Next(&record));
    if (!more) return out;
    out.push_back(record);
  }
}

std::string WriteRecords(const std::vector<std::string>& records,
                         Compression compression) {
  MemoryFileSystem fs;
  auto file = *fs.OpenToWrite("r", WriteMode::kTruncate);
  auto writer = *RecordWriter::Create(file.get(), compression);
  for (const auto& r : records) EXPECT_TRUE(writer->Write(r).ok());
  EXPECT_TRUE(writer->Finish().ok());
  return *ReadWholeFile(&fs, "r");
}

TEST(Records, UpstreamsFiles) {
  for (const char* type : {"", "GZIP", "ZLIB"}) {
    const Compression compression = *ParseCompression(type);
    const std::string name = *type == 0     ? "plain.tfrecord"
                             : *type == 'G' ? "gzip.tfrecord"
                                            : "zlib.tfrecord";
    const std::string golden = *ReadWholeFile(PosixFileSystem(), Golden(name));
    EXPECT_EQ(*ReadRecords(golden, compression), GoldenRecords()) << name;
    const std::string ours = WriteRecords(GoldenRecords(), compression);
    EXPECT_EQ(*ReadRecords(ours, compression), GoldenRecords()) << name;
    if (*type == 0) {
      EXPECT_EQ(ours, golden);
    }
    // Packed streams one behind the other count as one.
    EXPECT_EQ(ReadRecords(ours + ours, compression)->size(), 14u) << name;
  }
  EXPECT_FALSE(ParseCompression("gzip").ok());
}

TEST(Records, EveryTruncationAndFlipIsFound) {
  const std::vector<std::string> records = {"", "a", "hello", "zzzzzzzzzzzz"};
  for (Compression compression : {Compression::kNone, Compression::kGzip,
                                  Compression::kZlib, Compression::kSnappy}) {
    const std::string bytes = WriteRecords(records, compression);
    for (size_t i = 0; i < bytes.size(); ++i) {
      const auto cut = ReadRecords(bytes.substr(0, i), compression);
      if (cut.ok()) {
        // A cut between records cannot be seen.
        EXPECT_LT(cut->size(), records.size());
      } else {
        EXPECT_EQ(cut.status().code(), absl::StatusCode::kDataLoss);
      }
      std::string flipped = bytes;
      flipped[i] ^= 0x20;
      const auto found = ReadRecords(flipped, compression);
      if (found.ok()) {
        // Bytes of gzip's header that say nothing of the data.
        EXPECT_EQ(*found, records) << i;
        EXPECT_NE(compression, Compression::kNone) << i;
      } else {
        EXPECT_EQ(found.status().code(), absl::StatusCode::kDataLoss) << i;
      }
    }
  }
}

TEST(Records, SaysWhereAndGoesThere) {
  MemoryFileSystem fs;
  const std::string bytes =
      WriteRecords({"first", "second", "third"}, Compression::kNone);
  ASSERT_TRUE(WriteFileAtomically(&fs, "r", bytes).ok());
  const auto file = *fs.OpenToRead("r");
  RecordReader reader(file.get());
  std::string record;
  ASSERT_TRUE(*reader.Next(&record));
  const uint64_t second = reader.offset();
  EXPECT_EQ(second, 21u);
  ASSERT_TRUE(*reader.Next(&record));
  ASSERT_TRUE(*reader.Next(&record));
  EXPECT_FALSE(*reader.Next(&record));
  EXPECT_TRUE(reader.Seek(second).ok());
  ASSERT_TRUE(*reader.Next(&record));
  EXPECT_EQ(record, "second");
  EXPECT_TRUE(reader.Seek(1).ok());
  EXPECT_EQ(reader.Next(&record).status().message(),
            "corrupted record at 1 of r");
}

TEST(Events, ReadsUpstreamsAndItsOwn) {
  int events = 0, summaries = 0;
  for (const char* name : {"events_v1.tfevents", "events_v2.tfevents"}) {
    auto reader = *EventReader::Open(PosixFileSystem(), Golden(name));
    for (tensorflow::Event event; *reader->Next(&event);) {
      ++events;
      summaries += event.has_summary();
    }
  }
  EXPECT_EQ(events, 14);
  EXPECT_EQ(summaries, 8);

  MemoryFileSystem fs;
  auto writer = *EventWriter::Create(&fs, "logs/events", ".v2");
  EXPECT_TRUE(writer->WriteScalar("loss", 0.5f, 7, EventClock()).ok());
  EXPECT_TRUE(writer->Flush().ok());
  auto reader = *EventReader::Open(&fs, writer->path());
  tensorflow::Event event;
  ASSERT_TRUE(*reader->Next(&event));
  EXPECT_EQ(event.file_version(), "brain.Event:2");
  ASSERT_TRUE(*reader->Next(&event));
  EXPECT_EQ(event.step(), 7);
  EXPECT_EQ(event.summary().value(0).simple_value(), 0.5f);
  EXPECT_FALSE(*reader->Next(&event));
  EXPECT_TRUE(writer->Close().ok());
}

}  // namespace
}  // namespace headrace
