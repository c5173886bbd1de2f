#include "train/checkpoint.h"

#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/checkpoint_writer.h"
#include "gtest/gtest.h"
#include "tensorflow/core/protobuf/trackable_object_graph.pb.h"

namespace headrace {
namespace {

using Node = std::shared_ptr<VariableNode>;

Node Float(std::vector<float> values, const std::string& name = "Variable") {
  auto variable = std::make_shared<Variable>(
      DType::kFloat, Shape{static_cast<int64_t>(values.size())});
  variable->Assign(Tensor::Vector<float>(values));
  return std::make_shared<VariableNode>(variable, name);
}

std::vector<float> Value(const Node& node) {
  const Tensor t = *node->variable()->Read("");
  return {t.data<float>(), t.data<float>() + t.num_elements()};
}

TrackablePtr Group(std::vector<NamedChild> children) {
  auto group = std::make_shared<Trackable>();
  for (const auto& [name, child] : children) {
    EXPECT_TRUE(group->Attach(name, child).ok());
  }
  return group;
}

// A fresh folder in memory.
std::string Folder() {
  static int count = 0;
  return absl::StrCat("ram://checkpoint_test_", count++);
}

std::vector<std::string> KeysOf(const std::string& prefix) {
  std::string local;
  FileSystem* fs = *FileSystemFor(prefix, &local);
  return (*CheckpointReader::Open(fs, local))->keys();
}

TEST(Checkpoint, KeysAreEscapedPaths) {
  EXPECT_EQ(EscapeKeyPart("a.b/c"), "a..b.Sc");
  const auto root = Group(
      {{"d",
        Group({{"a/b", Float({1})}, {"x.S", Float({2})}, {"", Float({3})}})}});
  Checkpoint checkpoint(root);
  const std::string prefix = Folder() + "/deep/ckpt";
  const auto saved = checkpoint.Save(prefix);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(*saved, prefix + "-1");
  const std::vector<std::string> want = {
      "_CHECKPOINTABLE_OBJECT_GRAPH", "d//.ATTRIBUTES/VARIABLE_VALUE",
      "d/a.Sb/.ATTRIBUTES/VARIABLE_VALUE", "d/x..S/.ATTRIBUTES/VARIABLE_VALUE",
      "save_counter/.ATTRIBUTES/VARIABLE_VALUE"};
  EXPECT_EQ(KeysOf(*saved), want);
}

TEST(Checkpoint, RestoresWhatIsThereAndWhatComesLater) {
  const std::string prefix = Folder() + "/c";
  Checkpoint saver(
      Group({{"a", Float({1, 2})}, {"m", Group({{"b", Float({3})}})}}));
  ASSERT_TRUE(saver.Write(prefix).ok());

  const Node a = Float({0, 0}), b = Float({0});
  const auto root = Group({{"a", a}});
  Checkpoint reader(root);
  const auto restored = reader.Restore(prefix);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(Value(a), (std::vector<float>{1, 2}));
  EXPECT_FALSE((*restored)->CheckConsumed().ok());
  EXPECT_EQ((*restored)->Complaints().size(), 1u);

  const auto m = std::make_shared<Trackable>();
  ASSERT_TRUE(root->Attach("m", m).ok());
  ASSERT_TRUE(m->Attach("b", b).ok());
  EXPECT_EQ(Value(b), (std::vector<float>{3}));
  const Status consumed = (*restored)->CheckConsumed();
  EXPECT_TRUE(consumed.ok()) << consumed;
  EXPECT_TRUE((*restored)->Complaints().empty());
}

TEST(Checkpoint, TheLaterRestoreWins) {
  const std::string folder = Folder();
  for (const int i : {1, 2}) {
    Checkpoint saver(Group({{"a", Float({float(i)})}}));
    ASSERT_TRUE(saver.Write(absl::StrCat(folder, "/", i)).ok());
  }
  const auto root = std::make_shared<Trackable>();
  Checkpoint reader(root);
  ASSERT_TRUE(reader.Restore(folder + "/2").ok());
  ASSERT_TRUE(reader.Restore(folder + "/1").ok());
  const Node a = Float({0});
  ASSERT_TRUE(root->Attach("a", a).ok());
  EXPECT_EQ(Value(a), (std::vector<float>{1}));
}

TEST(Checkpoint, CyclesAndSharedObjects) {
  const std::string prefix = Folder() + "/c";
  const auto build = [](float v) {
    const auto root = Group({{"a", Float({v})}});
    EXPECT_TRUE(root->Attach("self", root, Trackable::kBorrowed).ok());
    EXPECT_TRUE(root->Attach("again", root->Child("a")).ok());
    return root;
  };
  ASSERT_TRUE(Checkpoint(build(5)).Write(prefix).ok());
  const auto root = build(0);
  auto restored = Checkpoint(root).Restore(prefix);
  ASSERT_TRUE((*restored)->CheckConsumed().ok());
  EXPECT_EQ(Value(std::static_pointer_cast<VariableNode>(root->Child("again"))),
            (std::vector<float>{5}));
}

TEST(Checkpoint, SlotVariablesBeforeAndAfter) {
  const std::string prefix = Folder() + "/c";
  const auto build = [](const Node& v, const Node& slot, bool attach_slot) {
    const auto optimizer = std::make_shared<Trackable>();
    if (attach_slot) {
      EXPECT_TRUE(optimizer->AttachSlot(v, "m.1", slot).ok());
    }
    return Group({{"v", v}, {"optimizer", optimizer}});
  };
  ASSERT_TRUE(
      Checkpoint(build(Float({1}), Float({7}), true)).Write(prefix).ok());
  EXPECT_EQ(KeysOf(prefix).back(),
            "v/.OPTIMIZER_SLOT/optimizer/m..1/.ATTRIBUTES/VARIABLE_VALUE");
  for (const bool before : {true, false}) {
    const Node v = Float({0}), slot = Float({0});
    const auto root = build(v, slot, before);
    auto restored = Checkpoint(root).Restore(prefix);
    ASSERT_TRUE(restored.ok()) << restored.status();
    if (!before) {
      EXPECT_FALSE((*restored)->CheckConsumed().ok());
      ASSERT_TRUE(root->Child("optimizer")->AttachSlot(v, "m.1", slot).ok());
    }
    EXPECT_EQ(Value(slot), (std::vector<float>{7}));
    EXPECT_TRUE((*restored)->CheckConsumed().ok());
  }
}

TEST(Checkpoint, MismatchChangesNothing) {
  const std::string prefix = Folder() + "/c";
  ASSERT_TRUE(Checkpoint(Group({{"a", Float({1})}, {"b", Float({2, 2})}}))
                  .Write(prefix)
                  .ok());
  const Node a = Float({0}), b = Float({0});
  const auto restored = Checkpoint(Group({{"a", a}, {"b", b}})).Restore(prefix);
  EXPECT_EQ(restored.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(restored.status().message().find("(2,)"), std::string::npos);
  EXPECT_EQ(Value(a), (std::vector<float>{0}));
}

TEST(Checkpoint, NearestNamesOfTheUnmatched) {
  const std::string prefix = Folder() + "/c";
  ASSERT_TRUE(Checkpoint(Group({{"layer", Group({{"kernel", Float({1})},
                                                 {"bias", Float({1})}})}}))
                  .Write(prefix)
                  .ok());
  Checkpoint reader(Group(
      {{"layer", Group({{"kernal", Float({1})}, {"bias", Float({1})}})}}));
  const auto restored = *reader.Restore(prefix);
  const RestoreReport report = restored->Report();
  ASSERT_EQ(report.keys.size(), 1u);
  EXPECT_EQ(report.keys[0].nearest, "(root).layer.kernal");
  ASSERT_EQ(report.objects.size(), 1u);
  EXPECT_EQ(report.objects[0].name, "(root).layer.kernal");
  EXPECT_EQ(report.objects[0].nearest,
            "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_FALSE(restored->CheckExistingMatched().ok());
  EXPECT_TRUE(restored->CheckNontrivial().ok());
}

TEST(Checkpoint, NameBasedFilesByVariableName) {
  auto variable = std::make_shared<Variable>(DType::kFloat, Shape{2, 3});
  const auto node = std::make_shared<VariableNode>(variable, "layer/w");
  const auto later = std::make_shared<Trackable>();
  const auto root = Group({{"x", later}});
  const auto restored = Checkpoint(root).Restore(
      absl::StrCat(HR_GOLDEN_DIR, "/checkpoints/saver_name_based/model-3"));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_TRUE((*restored)->name_based());
  ASSERT_TRUE(later->Attach("w", node).ok());
  EXPECT_EQ(Value(node), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(Checkpoint, CutAtEveryByteIsAnErrorOrWhole) {
  const std::string folder = Folder(), prefix = folder + "/c";
  ASSERT_TRUE(Checkpoint(Group({{"a", Float({1, 2})}, {"b", Float({3})}}))
                  .Write(prefix)
                  .ok());
  std::string local;
  FileSystem* fs = *FileSystemFor(prefix, &local);
  for (const std::string& path :
       {CheckpointIndexPath(local), CheckpointDataPath(local, 0, 1)}) {
    const std::string whole = *ReadWholeFile(fs, path);
    for (size_t n = 0; n < whole.size(); ++n) {
      ASSERT_TRUE(
          WriteFileAtomically(fs, path, StringView(whole).substr(0, n)).ok());
      const Node a = Float({0, 0}), b = Float({0});
      const auto restored =
          Checkpoint(Group({{"a", a}, {"b", b}})).Restore(prefix);
      EXPECT_FALSE(restored.ok()) << path << " cut at " << n;
    }
    ASSERT_TRUE(WriteFileAtomically(fs, path, whole).ok());
  }
  EXPECT_TRUE(Checkpoint(Group({})).Restore(prefix).ok());
}

TEST(Checkpoint, DamagedObjectGraphs) {
  MemoryFileSystem fs;
  const auto write = [&](const std::string& graph) {
    auto writer = *CheckpointWriter::Create(&fs, "/c");
    const StringView view = graph;
    EXPECT_TRUE(
        writer->AddStrings(kObjectGraphKey, {}, absl::MakeSpan(&view, 1)).ok());
    EXPECT_TRUE(writer->Finish().ok());
    return Restoration::Open(&fs, "/c").status().code();
  };
  EXPECT_EQ(write("\xff\xff"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(write(""), absl::StatusCode::kDataLoss);
  tensorflow::TrackableObjectGraph graph;
  graph.add_nodes()->add_children()->set_node_id(1);
  EXPECT_EQ(write(graph.SerializeAsString()), absl::StatusCode::kDataLoss);
  graph.mutable_nodes(0)->mutable_children(0)->set_node_id(-1);
  EXPECT_EQ(write(graph.SerializeAsString()), absl::StatusCode::kDataLoss);
  graph.mutable_nodes(0)->mutable_children(0)->set_node_id(0);
  EXPECT_EQ(write(graph.SerializeAsString()), absl::StatusCode::kOk);
}

// Destructors that need memory where there is none: reaching the end is what
// is tested.
TEST(Checkpoint, EndsWithoutMemory) {
  struct Full : MemoryFileSystem {
    Status Delete(const std::string&) override {
      ++asked;
      throw std::bad_alloc();
    }
    int asked = 0;
  } fs;
  CheckpointWriter::Create(&fs, "/left").value().reset();
  EXPECT_EQ(fs.asked, 1);

  auto writer = *CheckpointWriter::Create(&fs, "/c");
  tensorflow::TrackableObjectGraph graph;
  auto* value = graph.add_nodes()->add_attributes();
  value->set_name("VARIABLE_VALUE");
  value->set_checkpoint_key("v");
  const std::string text = graph.SerializeAsString();
  const StringView view = text;
  ASSERT_TRUE(
      writer->AddStrings(kObjectGraphKey, {}, absl::MakeSpan(&view, 1)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  static int told = 0;
  Restoration::SetComplaintsSink([](const std::vector<std::string>&) {
    ++told;
    throw std::bad_alloc();
  });
  EXPECT_TRUE(Restoration::Open(&fs, "/c").ok());
  Restoration::SetComplaintsSink(nullptr);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace headrace
