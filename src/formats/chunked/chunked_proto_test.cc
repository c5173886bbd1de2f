#include "formats/chunked/chunked_proto.h"

#include <gtest/gtest.h>

#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/chunked/riegeli.h"
#include "google/protobuf/util/message_differencer.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tensorflow/tools/proto_splitter/chunk.pb.h"

namespace headrace {
namespace {

using google::protobuf::util::MessageDifferencer;
using tensorflow::GraphDef;
using tensorflow::SavedModel;
using tensorflow::proto_splitter::ChunkedField;
using tensorflow::proto_splitter::ChunkInfo;
using tensorflow::proto_splitter::ChunkMetadata;

constexpr uint64_t kLargeBytes = 5000;

void AddConst(const std::string& name, size_t bytes,
              google::protobuf::RepeatedPtrField<tensorflow::NodeDef>* to) {
  tensorflow::NodeDef* n = to->Add();
  n->set_name(name);
  n->set_op("Const");
  (*n->mutable_attr())["dtype"].set_type(tensorflow::DT_STRING);
  (*n->mutable_attr())["value"].mutable_tensor()->set_tensor_content(
      std::string(bytes, name[0]));
}

SavedModel LargeModel() {
  SavedModel model;
  model.set_saved_model_schema_version(1);
  auto* meta = model.add_meta_graphs();
  meta->mutable_meta_info_def()->add_tags("serve");
  (*meta->mutable_signature_def())["serving_default"].set_method_name("m");
  GraphDef* graph = meta->mutable_graph_def();
  AddConst("small", 10, graph->mutable_node());
  AddConst("large", kLargeBytes, graph->mutable_node());
  AddConst("tiny", 1, graph->mutable_node());
  for (int i = 0; i < 40; ++i) {
    AddConst("n" + std::to_string(i), 100, graph->mutable_node());
  }
  auto* f = graph->mutable_library()->add_function();
  f->mutable_signature()->set_name("f");
  AddConst("inner", kLargeBytes, f->mutable_node_def());
  for (int i = 0; i < 100; ++i) {
    meta->mutable_object_graph_def()
        ->add_nodes()
        ->mutable_user_object()
        ->set_identifier("object " + std::to_string(i));
  }
  return model;
}

std::string InChunks(SavedModel model, uint64_t chunk_bytes) {
  MemoryFileSystem fs;
  const Status s = WriteChunkedProto(&model, &fs, "m.cpb", chunk_bytes);
  EXPECT_TRUE(s.ok()) << s;
  return *ReadWholeFile(&fs, "m.cpb");
}

template <typename Message>
Status Merged(StringView bytes, Message* to) {
  MemoryFileSystem fs;
  EXPECT_TRUE(WriteFileAtomically(&fs, "m.cpb", bytes).ok());
  return ReadChunkedProto(&fs, "m.cpb", to);
}

// A file of these records and metadata.
std::string FileOf(const std::vector<std::string>& records,
                   const ChunkMetadata& how) {
  MemoryFileSystem fs;
  auto file = *fs.OpenToWrite("r", WriteMode::kTruncate);
  RiegeliWriter writer = *RiegeliWriter::Create(file.get());
  ChunkMetadata metadata = how;
  for (const std::string& record : records) {
    ChunkInfo* info = metadata.add_chunks();
    info->set_offset(*writer.Write(record));
    info->set_size(record.size());
    info->set_type(ChunkInfo::MESSAGE);
  }
  EXPECT_TRUE(writer.Write(metadata.SerializeAsString()).ok());
  return *ReadWholeFile(&fs, "r");
}

TEST(ChunkedProtoTest, WhatWasCutIsMergedAgain) {
  const SavedModel model = LargeModel();
  for (const uint64_t chunk : {200, 500, 1000, 3000, 6000, 100000}) {
    SavedModel merged;
    const Status s = Merged(InChunks(model, chunk), &merged);
    ASSERT_TRUE(s.ok()) << chunk << ": " << s;
    EXPECT_TRUE(MessageDifferencer::Equals(model, merged)) << chunk;
  }
}

TEST(ChunkedProtoTest, RecordsMayCrossBlocks) {
  SavedModel model;
  for (const size_t size : {65000, 65535, 65536, 200000, 3}) {
    AddConst("a", size,
             model.add_meta_graphs()->mutable_graph_def()->mutable_node());
    SavedModel merged;
    const Status s = Merged(InChunks(model, 70000), &merged);
    ASSERT_TRUE(s.ok()) << s;
    EXPECT_TRUE(MessageDifferencer::Equals(model, merged)) << size;
  }
}

TEST(ChunkedProtoTest, AnyCutAndAnyFlippedBitIsAnErrorThatNamesTheFile) {
  SavedModel model = LargeModel();
  model.mutable_meta_graphs(0)->mutable_object_graph_def()->Clear();
  const std::string bytes = InChunks(model, 2000);
  for (size_t n = 0; n < bytes.size(); ++n) {
    SavedModel merged;
    const Status s = Merged(StringView(bytes).substr(0, n), &merged);
    EXPECT_TRUE(absl::IsDataLoss(s)) << n << ": " << s;
    EXPECT_NE(s.message().find("m.cpb"), std::string::npos) << s;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] ^= static_cast<char>(1 << (i % 8));
    SavedModel merged;
    EXPECT_TRUE(absl::IsDataLoss(Merged(flipped, &merged))) << i;
  }
}

TEST(ChunkedProtoTest, APathMayLeadThroughWhatIsNotThereYet) {
  GraphDef constant;
  AddConst("c", 3, constant.mutable_node());
  const auto& tensor = constant.node(0).attr().at("value").tensor();
  ChunkMetadata how;
  ChunkedField* f = how.mutable_message()->add_chunked_fields();
  f->add_field_tag()->set_field(1);
  f->add_field_tag()->set_index(0);
  f->add_field_tag()->set_field(5);
  f->add_field_tag()->mutable_map_key()->set_s("value");
  f->add_field_tag()->set_field(8);
  f->mutable_message()->set_chunk_index(0);
  GraphDef merged;
  const Status s = Merged(FileOf({tensor.SerializeAsString()}, how), &merged);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(merged.node(0).attr().at("value").tensor().tensor_content(), "ccc");
}

TEST(ChunkedProtoTest, MetadataThatDoNotFitAreRefused) {
  const auto refused = [](const ChunkMetadata& how, StringView text) {
    GraphDef merged;
    const Status s = Merged(FileOf({""}, how), &merged);
    EXPECT_TRUE(absl::IsDataLoss(s)) << s;
    EXPECT_NE(s.message().find(text), std::string::npos) << s;
  };
  ChunkMetadata how;
  how.mutable_message()->set_chunk_index(7);
  refused(how, "chunk 7 is not one of its 1");
  how.mutable_message()->set_chunk_index(0);
  ChunkedField* f = how.mutable_message()->add_chunked_fields();
  f->mutable_message()->set_chunk_index(0);
  refused(how, "chunk 0 belongs at two places");
  f->Clear();
  f->add_field_tag()->set_field(99);
  refused(how, "tensorflow.GraphDef has no field 99");
  f->mutable_field_tag(0)->set_field(1);
  refused(how, "a path ends at the list tensorflow.GraphDef.node");
  f->add_field_tag()->set_index(5);
  refused(how, "expected one of the 0 elements");
  f->mutable_field_tag(1)->set_index(0);
  for (int i = 0; i < 1000; ++i) {
    f->add_field_tag()->set_field(i == 0 ? 5 : 2);
    f->add_field_tag()->mutable_map_key()->set_s("k");
    f->add_field_tag()->set_field(10);
  }
  refused(how, "leads nowhere");
}

TEST(ChunkedProtoTest, NumbersInChunksAreUnimplemented) {
  ChunkMetadata how;
  ChunkedField* f = how.mutable_message()->add_chunked_fields();
  f->add_field_tag()->set_field(1);
  f->mutable_message()->set_chunk_index(0);
  SavedModel merged;
  const Status s = Merged(FileOf({"\1"}, how), &merged);
  EXPECT_TRUE(absl::IsUnimplemented(s)) << s;
}

TEST(ChunkedProtoTest, WhatCannotBeCutStaysWhole) {
  SavedModel model;
  auto* value = &(*model.add_meta_graphs()
                       ->mutable_graph_def()
                       ->add_node()
                       ->mutable_attr())["value"];
  for (int i = 0; i < 1000; ++i) value->mutable_tensor()->add_int_val(i);
  SavedModel merged;
  ASSERT_TRUE(Merged(InChunks(model, 100), &merged).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(model, merged));
}

}  // namespace
}  // namespace headrace
