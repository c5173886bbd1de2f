// Checkpoints that TensorFlow wrote are read, and written anew byte for byte.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/checkpoint_reader.h"
#include "formats/checkpoint_writer.h"
#include "formats/element_size.h"
#include "formats/table.h"
#include "gtest/gtest.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace headrace {
namespace {

using tensorflow::DataType;

std::string Golden(StringView name) {
  return absl::StrCat(HR_GOLDEN_DIR, "/checkpoints/", name);
}

std::unique_ptr<CheckpointReader> OpenGolden(StringView name) {
  auto reader = CheckpointReader::Open(PosixFileSystem(), Golden(name));
  EXPECT_TRUE(reader.ok()) << reader.status();
  return std::move(reader).value();
}

template <typename T>
absl::Span<const char> Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(T)};
}

template <typename T>
StatusOr<std::vector<T>> ReadAs(const CheckpointReader& reader, StringView key,
                                StringView slice = "") {
  HR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, reader.Lookup(key));
  TensorSlice box = TensorSlice::Whole(static_cast<int>(tensor.dims.size()));
  if (!slice.empty()) {
    HR_ASSIGN_OR_RETURN(box, TensorSlice::Parse(slice));
  }
  HR_ASSIGN_OR_RETURN(box, box.Resolve(tensor.dims));
  HR_ASSIGN_OR_RETURN(const int64_t count, CountElements(SliceDims(box)));
  std::vector<T> out(count);
  HR_RETURN_IF_ERROR(reader.ReadSlice(
      key, box,
      absl::MakeSpan(reinterpret_cast<char*>(out.data()), count * sizeof(T))));
  return out;
}

// Reads every piece of a checkpoint and writes it again, in the order in which
// the pieces lie in the data file.
void Rewrite(StringView name, FileSystem* to, const std::string& prefix) {
  const auto reader = OpenGolden(name);
  struct Piece {
    int64_t offset, empty_first;
    std::string key, slice;
  };
  std::vector<Piece> pieces;
  auto table = *TableReader::Open(
      *PosixFileSystem()->OpenToRead(Golden(name) + ".index"));
  ASSERT_TRUE(
      table
          ->Scan([&](StringView key, StringView value) {
            tensorflow::BundleEntryProto entry;
            EXPECT_TRUE(key.empty() ||
                        entry.ParseFromArray(value.data(), value.size()));
            if (key.empty() || entry.slices_size() > 0) {
              return OkStatus();
            }
            Piece piece{entry.offset(), entry.size(), std::string(key), ""};
            if (key[0] == '\0') {
              TensorSlice slice;
              EXPECT_TRUE(DecodeSliceKey(key, &piece.key, &slice).ok());
              piece.slice = slice.ToString();
            }
            pieces.push_back(piece);
            return OkStatus();
          })
          .ok());
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.offset, a.empty_first) <
           std::tie(b.offset, b.empty_first);
  });
  auto writer = *CheckpointWriter::Create(to, prefix);
  for (const Piece& piece : pieces) {
    const CheckpointTensor tensor = *reader->Lookup(piece.key);
    Status status;
    if (tensor.dtype == tensorflow::DT_STRING) {
      const auto values = *reader->ReadStrings(piece.key);
      const std::vector<StringView> views(values.begin(), values.end());
      status = writer->AddStrings(piece.key, tensor.dims, views);
    } else if (piece.slice.empty()) {
      std::string out(*CountElements(tensor.dims) * ElementSize(tensor.dtype),
                      0);
      ASSERT_TRUE(reader->Read(piece.key, absl::MakeSpan(out)).ok());
      status = writer->Add(piece.key, tensor.dtype, tensor.dims, out);
    } else {
      const auto values = *ReadAs<float>(*reader, piece.key, piece.slice);
      status =
          writer->AddSlice(piece.key, tensor.dtype, tensor.dims,
                           *TensorSlice::Parse(piece.slice), Bytes(values));
    }
    ASSERT_TRUE(status.ok()) << status;
  }
  ASSERT_TRUE(writer->Finish().ok());
}

TEST(Checkpoint, BytesAreUpstreams) {
  for (const char* name :
       {"all_dtypes/ckpt", "empty_tensors/ckpt-1", "escaped_names/ckpt-1",
        "many_keys/ckpt-1", "saver_partitioned/ckpt",
        "saver_name_based/model-3", "int4_constant_reader/ckpt"}) {
    MemoryFileSystem fs;
    Rewrite(name, &fs, "d/out");
    for (const char* suffix : {".index", ".data-00000-of-00001"}) {
      EXPECT_EQ(
          *ReadWholeFile(&fs, absl::StrCat("d/out", suffix)),
          *ReadWholeFile(PosixFileSystem(), absl::StrCat(Golden(name), suffix)))
          << name << suffix;
    }
    EXPECT_EQ(fs.List("d")->size(), 2u);
  }
}

TEST(Checkpoint, ReadsPartitionsInAnyCut) {
  const auto reader = OpenGolden("saver_partitioned/ckpt");
  EXPECT_EQ(reader->keys(), std::vector<std::string>{"table"});
  EXPECT_TRUE(reader->Contains("table"));
  EXPECT_EQ(reader->Lookup("table")->slices.size(), 3u);
  const auto whole = *ReadAs<float>(*reader, "table");
  ASSERT_EQ(whole.size(), 14u);
  EXPECT_EQ(*ReadAs<float>(*reader, "table", "2,3:0,1"),
            (std::vector<float>{whole[4], whole[6], whole[8]}));
  EXPECT_FALSE(ReadAs<float>(*reader, "table", "5,3:-").ok());
}

TEST(Checkpoint, ReadsShards) {
  const auto by_device = OpenGolden("sharded_by_device/ckpt");
  EXPECT_EQ(*ReadAs<float>(*by_device, "a"), (std::vector<float>{1, 2}));
  EXPECT_EQ(*ReadAs<int32_t>(*by_device, "b"), (std::vector<int32_t>{3, 4}));
  const auto by_size = OpenGolden("sharded_by_size/ckpt-1");
  const auto values =
      *ReadAs<float>(*by_size, "v/0/.ATTRIBUTES/VARIABLE_VALUE");
  ASSERT_EQ(values.size(), 400u);
  for (int i = 0; i < 400; ++i) EXPECT_EQ(values[i], i);
}

TEST(Checkpoint, ReadsTheFirstFormat) {
  const auto reader = OpenGolden("saver_format_v1/old");
  EXPECT_EQ(reader->format(), 1);
  EXPECT_EQ(reader->keys(), (std::vector<std::string>{"n", "text", "w"}));
  EXPECT_EQ(*ReadAs<float>(*reader, "w"),
            (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(*ReadAs<float>(*reader, "w", "-:1,1"), (std::vector<float>{1, 4}));
  EXPECT_EQ(*ReadAs<int32_t>(*reader, "n"), (std::vector<int32_t>{1, -2, 3}));
  EXPECT_EQ(*reader->ReadStrings("text"),
            (std::vector<std::string>{"a", "bcd"}));
}

TEST(Checkpoint, Errors) {
  const auto reader = OpenGolden("all_dtypes/ckpt");
  EXPECT_EQ(reader->Lookup("none").status().message(),
            "Key none not found in checkpoint");
  std::string out(3, 0);
  const std::string key = "float32_scalar/.ATTRIBUTES/VARIABLE_VALUE";
  EXPECT_EQ(reader->Read(key, absl::MakeSpan(out)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(reader->ReadStrings(key).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      CheckpointReader::Open(PosixFileSystem(), Golden("none")).status().code(),
      absl::StatusCode::kNotFound);
}

// One writer that refused something refuses all that comes.
TEST(CheckpointWriter, RefusesWhatDoesNotAgree) {
  const std::vector<float> one = {1};
  const auto add = [&](StringView key, DataType dtype,
                       CheckpointWriter::Dims dims) {
    MemoryFileSystem fs;
    auto writer = *CheckpointWriter::Create(&fs, "c");
    EXPECT_TRUE(writer->Add("a", tensorflow::DT_FLOAT, {}, Bytes(one)).ok());
    const Status status = writer->Add(key, dtype, dims, Bytes(one));
    if (!status.ok()) {
      EXPECT_EQ(writer->Finish(), status);
    }
    return status.code();
  };
  EXPECT_EQ(add("b", tensorflow::DT_INT32, {1, 1}), absl::StatusCode::kOk);
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(add("a", tensorflow::DT_FLOAT, {}), invalid);
  EXPECT_EQ(add("", tensorflow::DT_FLOAT, {}), invalid);
  EXPECT_EQ(add("b", tensorflow::DT_FLOAT, {2}), invalid);
  EXPECT_EQ(add("b", tensorflow::DT_FLOAT, {-1}), invalid);
  EXPECT_EQ(add("b", tensorflow::DT_DOUBLE, {}), invalid);
  EXPECT_EQ(add("b", tensorflow::DT_RESOURCE, {}),
            absl::StatusCode::kUnimplemented);
}

TEST(CheckpointWriter, WithoutFinishNothingIsLeft) {
  MemoryFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("d").ok());
  {
    auto writer = *CheckpointWriter::Create(&fs, "d/c");
    EXPECT_TRUE(writer->AddStrings("s", {1}, {"x"}).ok());
    EXPECT_EQ(fs.List("d")->size(), 1u);
  }
  EXPECT_EQ(fs.List("d")->size(), 0u);
}

TEST(CheckpointWriter, LargeTensorsAndAlignment) {
  MemoryFileSystem fs;
  CheckpointWriter::Options options;
  options.alignment = 64;
  auto writer = *CheckpointWriter::Create(&fs, "c", options);
  std::vector<float> big(3000001);
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<float>(i % 977);
  const int64_t size = big.size();
  const std::vector<int8_t> small = {1, 2, 3};
  const std::string long_text(3 << 20, 'z');
  EXPECT_TRUE(writer->Add("a", tensorflow::DT_INT8, {3}, Bytes(small)).ok());
  EXPECT_TRUE(writer->Add("b", tensorflow::DT_FLOAT, {size}, Bytes(big)).ok());
  EXPECT_TRUE(writer->AddStrings("c", {2}, {long_text, ""}).ok());
  EXPECT_TRUE(writer->Add("d", tensorflow::DT_INT8, {3}, Bytes(small)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = *CheckpointReader::Open(&fs, "c");
  EXPECT_EQ(*ReadAs<float>(*reader, "b"), big);
  EXPECT_EQ((*reader->ReadStrings("c"))[0], long_text);
  EXPECT_EQ(*ReadAs<int8_t>(*reader, "d"), small);
}

TEST(MergeCheckpoints, SlicesComeTogether) {
  MemoryFileSystem fs;
  std::vector<std::string> parts;
  for (int i = 0; i < 3; ++i) {
    parts.push_back(absl::StrCat("part", i));
    auto writer = *CheckpointWriter::Create(&fs, parts.back());
    const std::vector<int64_t> rows = {i, i + 10};
    const std::vector<std::string> text = {absl::StrCat("s", i)};
    const TensorSlice slice = *TensorSlice::Parse(absl::StrCat("-:", i, ",1"));
    EXPECT_TRUE(
        writer->AddSlice("t", tensorflow::DT_INT64, {2, 3}, slice, Bytes(rows))
            .ok());
    EXPECT_TRUE(writer->AddStringsSlice("s", {1, 3}, slice, {text[0]}).ok());
    EXPECT_TRUE(
        writer->Add(parts.back(), tensorflow::DT_INT64, {2}, Bytes(rows)).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  EXPECT_EQ(MergeCheckpoints(&fs, {"part0", "absent"}, "m").code(),
            absl::StatusCode::kNotFound);
  parts.push_back("absent");
  ASSERT_TRUE(MergeCheckpoints(&fs, parts, "m", true).ok());
  const auto reader = *CheckpointReader::Open(&fs, "m");
  EXPECT_EQ(*ReadAs<int64_t>(*reader, "t"),
            (std::vector<int64_t>{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(*reader->ReadStrings("s"),
            (std::vector<std::string>{"s0", "s1", "s2"}));
  EXPECT_EQ(*ReadAs<int64_t>(*reader, "part2"), (std::vector<int64_t>{2, 12}));
  EXPECT_TRUE(FileExists(&fs, "m.data-00002-of-00003"));
  EXPECT_FALSE(FileExists(&fs, "part0.index"));
}

// Reads all that a damaged checkpoint still offers.
Status ReadAll(FileSystem* fs, const std::string& prefix) {
  HR_ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(fs, prefix));
  for (const std::string& key : reader->keys()) {
    HR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, reader->Lookup(key));
    if (tensor.dtype == tensorflow::DT_STRING) {
      HR_RETURN_IF_ERROR(reader->ReadStrings(key).status());
      continue;
    }
    HR_ASSIGN_OR_RETURN(const int64_t count, CountElements(tensor.dims));
    if (count > 1000000) return DataLoss("large");
    std::string out(count * ElementSize(tensor.dtype), 0);
    HR_RETURN_IF_ERROR(reader->Read(key, absl::MakeSpan(out)));
  }
  return OkStatus();
}

TEST(Checkpoint, EveryTruncationAndFlipIsFound) {
  struct Case {
    const char* name;
    std::vector<std::string> files;
  };
  for (const Case& c :
       {Case{"saver_partitioned/ckpt", {".index", ".data-00000-of-00001"}},
        Case{"saver_name_based/model-3", {".index", ".data-00000-of-00001"}},
        Case{"saver_format_v1/old", {""}}}) {
    std::map<std::string, std::string> bytes;
    MemoryFileSystem fs;
    for (const std::string& file : c.files) {
      bytes[file] = *ReadWholeFile(PosixFileSystem(), Golden(c.name) + file);
      ASSERT_TRUE(WriteFileAtomically(&fs, "c" + file, bytes[file]).ok());
    }
    ASSERT_TRUE(ReadAll(&fs, "c").ok());
    for (const std::string& file : c.files) {
      const std::string good = bytes[file];
      const bool is_table = file != ".data-00000-of-00001";
      for (size_t i = 0; i < good.size(); ++i) {
        ASSERT_TRUE(
            WriteFileAtomically(&fs, "c" + file, good.substr(0, i)).ok());
        EXPECT_EQ(ReadAll(&fs, "c").code(), absl::StatusCode::kDataLoss) << i;
        std::string flipped = good;
        flipped[i] ^= 0x10;
        ASSERT_TRUE(WriteFileAtomically(&fs, "c" + file, flipped).ok());
        const Status status = ReadAll(&fs, "c");
        // The metaindex of a table and its padding are not read.
        if (!is_table || !status.ok()) {
          EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i;
        }
      }
      ASSERT_TRUE(WriteFileAtomically(&fs, "c" + file, good).ok());
    }
  }
}

// Large tensors are written in pieces, by several threads and past the page
// cache: the file is what it would be without.
TEST(Checkpoint, LargeTensorsLieCloseTogether) {
  const std::string folder = testing::TempDir();
  std::vector<std::string> tensors;
  for (const size_t size :
       {3u << 20, (5u << 20) + 13, 100u, (1u << 20) - 1, (2u << 20) + 4096}) {
    std::string& bytes = tensors.emplace_back(size, 0);
    for (size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<char>((i + size) * 2654435761u >> 13);
    }
  }
  std::string files[2];
  for (const bool sync : {false, true}) {
    const std::string prefix = JoinPath(folder, absl::StrCat("large", sync));
    CheckpointWriter::Options options;
    options.sync = sync;
    auto writer = *CheckpointWriter::Create(PosixFileSystem(), prefix, options);
    for (size_t i = 0; i < tensors.size(); ++i) {
      ASSERT_TRUE(writer
                      ->Add(absl::StrCat("t", i), tensorflow::DT_UINT8,
                            {static_cast<int64_t>(tensors[i].size())},
                            tensors[i])
                      .ok());
    }
    ASSERT_TRUE(writer->Finish().ok());
    const auto reader = *CheckpointReader::Open(PosixFileSystem(), prefix);
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_TRUE(*ReadAs<char>(*reader, absl::StrCat("t", i)) ==
                  std::vector<char>(tensors[i].begin(), tensors[i].end()));
    }
    files[sync] =
        *ReadWholeFile(PosixFileSystem(), CheckpointDataPath(prefix, 0, 1));
    EXPECT_TRUE(
        DeleteRecursively(PosixFileSystem(), CheckpointDataPath(prefix, 0, 1))
            .ok());
  }
  EXPECT_TRUE(files[0] == files[1]);
  EXPECT_TRUE(files[0] == absl::StrJoin(tensors, ""));
}

}  // namespace
}  // namespace headrace
