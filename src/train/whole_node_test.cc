// Variables in parts in checkpoints: one tensor, however many parts.
#include "train/whole_node.h"

#include "gtest/gtest.h"
#include "train/checkpoint.h"

namespace headrace {
namespace {

using Node = std::shared_ptr<VariableNode>;

// Rows of two numbers each.
Node Rows(std::vector<float> values, const std::string& name) {
  Tensor t = *Tensor::Allocate(
      DType::kFloat, Shape{static_cast<int64_t>(values.size()) / 2, 2});
  std::copy(values.begin(), values.end(), t.data<float>());
  auto variable = std::make_shared<Variable>(DType::kFloat, t.shape());
  variable->Assign(t);
  return std::make_shared<VariableNode>(variable, name);
}

std::vector<float> ValuesOf(const std::vector<Node>& parts) {
  std::vector<float> all;
  for (const Node& part : parts) {
    const Tensor t = *part->variable()->Read("");
    all.insert(all.end(), t.data<float>(), t.data<float>() + t.num_elements());
  }
  return all;
}

// Parts of so many rows each, of zeros.
std::vector<Node> Zeros(std::vector<int> rows, const std::string& name) {
  std::vector<Node> parts;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<float> zeros(rows[i] * 2);
    parts.push_back(Rows(zeros, absl::StrCat(name, "/part_", i)));
  }
  return parts;
}

std::shared_ptr<WholeNode> WholeOf(const std::vector<Node>& parts) {
  return *WholeNode::Of({parts.begin(), parts.end()});
}

// A root with "table" and "optimizer".
TrackablePtr Root(const TrackablePtr& table, const TrackablePtr& optimizer) {
  auto root = std::make_shared<Trackable>();
  EXPECT_TRUE(root->Attach("table", table).ok());
  EXPECT_TRUE(root->Attach("optimizer", optimizer).ok());
  return root;
}

void AddSlots(Trackable& optimizer, const std::vector<Node>& parts,
              const std::vector<Node>& slots) {
  for (size_t i = 0; i < parts.size(); ++i) {
    ASSERT_TRUE(optimizer.AttachSlot(parts[i], "m", slots[i]).ok());
  }
}

const std::vector<float> kTable = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                         kSlot = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
constexpr char kKey[] = "table/.ATTRIBUTES/VARIABLE_VALUE",
               kSlotKey[] =
                   "table/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/"
                   "VARIABLE_VALUE";

// A checkpoint of the table above and its slot, in parts of 3 and 2 rows.
std::string Written(const std::string& folder, int64_t max_shard_bytes = 0) {
  const std::vector<Node> parts = {Rows({0, 1, 2, 3, 4, 5}, "t/part_0"),
                                   Rows({6, 7, 8, 9}, "t/part_1")};
  const std::vector<Node> slots = {Rows({9, 8, 7, 6, 5, 4}, "m/t/part_0"),
                                   Rows({3, 2, 1, 0}, "m/t/part_1")};
  const auto table = WholeOf(parts);
  const auto optimizer = std::make_shared<Trackable>();
  AddSlots(*optimizer, parts, slots);
  Checkpoint checkpoint(Root(table, optimizer));
  const std::string prefix = absl::StrCat("ram://whole_node_test/", folder);
  SaveOptions options;
  options.files.max_shard_bytes = max_shard_bytes;
  EXPECT_TRUE(checkpoint.Write(prefix, options).ok());
  return prefix;
}

TEST(WholeNode, IsOneTensorInSlices) {
  for (const int64_t most : {0, 20}) {
    const std::string prefix = Written(absl::StrCat("slices", most), most);
    std::string local;
    FileSystem* fs = *FileSystemFor(prefix, &local);
    const auto reader = *CheckpointReader::Open(fs, local);
    EXPECT_EQ(reader->keys(),
              (std::vector<std::string>{
                  "_CHECKPOINTABLE_OBJECT_GRAPH",
                  "save_counter/.ATTRIBUTES/VARIABLE_VALUE", kKey, kSlotKey}));
    const CheckpointTensor stored = *reader->Lookup(kKey);
    EXPECT_EQ(stored.dims, (std::vector<int64_t>{5, 2}));
    EXPECT_EQ(stored.slices.size(), most == 0 ? 2u : 4u);
    for (const auto& [key, want] :
         {std::pair(kKey, kTable), std::pair(kSlotKey, kSlot)}) {
      std::vector<float> values(10);
      auto* bytes = reinterpret_cast<char*>(values.data());
      ASSERT_TRUE(reader->Read(key, absl::MakeSpan(bytes, 40)).ok());
      EXPECT_EQ(values, want);
    }
  }
}

TEST(WholeNode, IsReadIntoAnyNumberOfParts) {
  const std::string prefix = Written("parts");
  for (const std::vector<int>& rows :
       std::vector<std::vector<int>>{{5}, {3, 2}, {2, 2, 1}, {1, 1, 1, 1, 1}}) {
    for (const bool later : {false, true}) {
      const std::vector<Node> parts = Zeros(rows, "other"),
                              slots = Zeros(rows, "slot");
      const auto table = WholeOf(parts);
      const auto optimizer = std::make_shared<Trackable>();
      if (!later) AddSlots(*optimizer, parts, slots);
      Checkpoint checkpoint(Root(table, optimizer));
      const auto restored = checkpoint.Restore(prefix);
      ASSERT_TRUE(restored.ok()) << restored.status();
      if (later) AddSlots(*optimizer, parts, slots);
      EXPECT_EQ(ValuesOf(parts), kTable);
      EXPECT_EQ(ValuesOf(slots), kSlot);
      EXPECT_TRUE((*restored)->CheckConsumed().ok());
    }
  }
}

TEST(WholeNode, IsReadIntoAndWrittenByAVariable) {
  const Node table = Zeros({5}, "table")[0], slot = Zeros({5}, "slot")[0];
  const auto optimizer = std::make_shared<Trackable>();
  ASSERT_TRUE(optimizer->AttachSlot(table, "m", slot).ok());
  Checkpoint checkpoint(Root(table, optimizer));
  ASSERT_TRUE(checkpoint.Restore(Written("variable")).ok());
  EXPECT_EQ(ValuesOf({table}), kTable);
  EXPECT_EQ(ValuesOf({slot}), kSlot);
  const std::string prefix = "ram://whole_node_test/of_variable";
  ASSERT_TRUE(checkpoint.Write(prefix).ok());
  const std::vector<Node> parts = Zeros({2, 3}, "t"),
                          slots = Zeros({2, 3}, "m");
  const auto whole = WholeOf(parts);
  const auto other = std::make_shared<Trackable>();
  AddSlots(*other, parts, slots);
  Checkpoint in_parts(Root(whole, other));
  ASSERT_TRUE((*in_parts.Restore(prefix))->CheckConsumed().ok());
  EXPECT_EQ(ValuesOf(parts), kTable);
  EXPECT_EQ(ValuesOf(slots), kSlot);
}

TEST(WholeNode, RefusesWhatDoesNotFit) {
  const std::vector<Node> parts = Zeros({3, 3}, "t");
  const auto table = WholeOf(parts);
  Checkpoint checkpoint(Root(table, std::make_shared<Trackable>()));
  const Status s = checkpoint.Restore(Written("unlike")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_NE(s.message().find("shape (5, 2)"), std::string::npos) << s;
  EXPECT_NE(s.message().find("shape (6, 2)"), std::string::npos) << s;
  EXPECT_EQ(ValuesOf(parts), std::vector<float>(12));
  const auto scalar = std::make_shared<VariableNode>(
      std::make_shared<Variable>(DType::kFloat, Shape()), "v");
  const auto wide = std::make_shared<VariableNode>(
      std::make_shared<Variable>(DType::kFloat, Shape{1, 3}), "v");
  const auto whole_number = std::make_shared<VariableNode>(
      std::make_shared<Variable>(DType::kInt32, Shape{1, 2}), "v");
  for (const TrackablePtr& other : std::vector<TrackablePtr>{
           scalar, wide, whole_number, std::make_shared<Trackable>()}) {
    EXPECT_FALSE(WholeNode::Of({Zeros({1}, "t")[0], other}).ok());
  }
  EXPECT_FALSE(WholeNode::Of({}).ok());
}

TEST(WholeNode, ASlotOfSomePartsIsNotSaved) {
  const std::vector<Node> parts = Zeros({3, 2}, "t");
  const auto table = WholeOf(parts);
  EXPECT_EQ((*table->Specs())[1].full_name, "t");
  EXPECT_EQ(parts[1]->whole(), table);
  const auto optimizer = std::make_shared<Trackable>();
  const Node first = Zeros({3}, "m")[0];
  ASSERT_TRUE(optimizer->AttachSlot(parts[0], "m", first).ok());
  EXPECT_EQ(optimizer->SlotOf(table, "m"), nullptr);
  const auto gathered = GraphValues::Gather(Root(table, optimizer));
  ASSERT_TRUE(gathered.ok());
  for (const ShardPiece& piece : gathered->values()) {
    EXPECT_EQ(piece.key, kKey);
  }
  ASSERT_TRUE(optimizer->AttachSlot(parts[1], "m", Zeros({2}, "m")[0]).ok());
  EXPECT_NE(optimizer->SlotOf(table, "m"), nullptr);
}

}  // namespace
}  // namespace headrace
