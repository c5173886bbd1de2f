#include "train/checkpoint_manager.h"

#include <filesystem>

#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "gtest/gtest.h"
#include "train/sharding.h"

namespace headrace {
namespace {

// A root with one float variable "w" of `n` elements.
struct Root {
  explicit Root(int64_t n = 1)
      : variable(std::make_shared<Variable>(DType::kFloat, Shape{n})),
        root(std::make_shared<Trackable>()),
        size(n) {
    Set(0);
    EXPECT_TRUE(
        root->Attach("w", std::make_shared<VariableNode>(variable, "w")).ok());
  }
  void Set(float value) {
    variable->Assign(Tensor::Vector<float>(std::vector<float>(size, value)));
  }
  float Get() { return variable->Read("w")->data<float>()[0]; }

  std::shared_ptr<Variable> variable;
  TrackablePtr root;
  int64_t size;
};

std::string Folder(StringView name) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(path);
  return path;
}

TEST(CheckpointManager, KeepsTheNewest) {
  const std::string folder = Folder("keeps");
  Root r;
  Checkpoint checkpoint(r.root);
  int64_t step = 0, made = 0;
  CheckpointManager::Options options;
  options.max_to_keep = 2;
  options.name = "model";
  options.step = [&]() -> StatusOr<int64_t> { return step; };
  options.interval = 2;
  options.init = [&] {
    ++made;
    return OkStatus();
  };
  auto manager = *CheckpointManager::Open(&checkpoint, folder, options);
  EXPECT_EQ(*manager->RestoreOrInitialize(), "");
  EXPECT_EQ(made, 1);
  for (step = 1; step <= 7; ++step) {
    r.Set(step);
    const auto path = manager->Save();
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(path->empty(), step % 2 == 0);
  }
  EXPECT_EQ(
      manager->checkpoints(),
      (std::vector<std::string>{folder + "/model-3", folder + "/model-4"}));
  EXPECT_EQ(*manager->Save(17, /*check_interval=*/false), folder + "/model-17");
  EXPECT_FALSE(FileExists(PosixFileSystem(), folder + "/model-3.index"));

  Root other;
  Checkpoint second(other.root);
  auto again = *CheckpointManager::Open(&second, folder, options);
  EXPECT_EQ(*again->RestoreOrInitialize(), folder + "/model-17");
  EXPECT_EQ(other.Get(), 7);
  EXPECT_EQ(*second.save_count(), 5);
  options.step = nullptr;
  EXPECT_EQ(CheckpointManager::Open(&second, folder, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CheckpointManager, Asynchronous) {
  const std::string folder = Folder("async");
  Root r(100000);
  Checkpoint checkpoint(r.root);
  auto manager =
      *CheckpointManager::Open(&checkpoint, folder, {.max_to_keep = 1});
  std::vector<std::string> written;
  SaveOptions options;
  options.async = true;
  options.callbacks = {
      [&](const std::string& path) { written.push_back(path); }};
  for (int i = 1; i <= 5; ++i) {
    r.Set(i);
    ASSERT_TRUE(manager->Save(std::nullopt, true, options).ok());
    r.Set(-1);  // while it is written
  }
  ASSERT_TRUE(manager->Sync().ok());
  EXPECT_EQ(written.size(), 5u);
  EXPECT_EQ(manager->checkpoints(),
            std::vector<std::string>{folder + "/ckpt-5"});
  ASSERT_TRUE(checkpoint.Restore(manager->latest()).ok());
  EXPECT_EQ(r.Get(), 5);
}

TEST(Checkpoint, AsynchronousErrorsComeLater) {
  Root r;
  Checkpoint checkpoint(r.root);
  const std::string file = Folder("file");
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), file, "").ok());
  SaveOptions options;
  options.async = true;
  ASSERT_TRUE(checkpoint.Write(file + "/c", options).ok());
  EXPECT_FALSE(checkpoint.Sync().ok());
  EXPECT_TRUE(checkpoint.Sync().ok());
}

TEST(ShardsBySize, CutsAndFills) {
  const auto floats = [](Shape shape) {
    Tensor t = *Tensor::Allocate(DType::kFloat, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i) t.data<float>()[i] = i;
    return t;
  };
  Tensor text = Tensor::Vector<std::string>({std::string(500, 'x')});
  Tensor part = floats({2, 50});  // the last rows of five
  const TensorSlice last_rows = *TensorSlice::Parse("3,2:-");
  const Shard values = {
      {.key = "a", .tensor = floats({3, 100})},
      {.key = "b", .tensor = floats({})},
      {.key = "c", .tensor = text},
      {.key = "d", .tensor = floats({0, 5})},
      {.key = "e", .tensor = floats({7})},
      {.key = "f", .tensor = part, .whole = {5, 50}, .slice = last_rows}};
  const auto shards = *ShardsBySize(values, 120);
  MemoryFileSystem fs;
  ASSERT_TRUE(CreateDirectories(&fs, "f").ok());
  ASSERT_TRUE(WriteShards(&fs, "f/c", shards, "", true).ok());
  const auto reader = *CheckpointReader::Open(&fs, "f/c");
  EXPECT_EQ(reader->keys().size(), 6u);
  std::vector<float> a(300);
  ASSERT_TRUE(
      reader->Read("a", absl::MakeSpan(reinterpret_cast<char*>(a.data()), 1200))
          .ok());
  for (int i = 0; i < 300; ++i) ASSERT_EQ(a[i], i);
  ASSERT_TRUE(reader
                  ->ReadSlice("f", last_rows,
                              absl::MakeSpan(reinterpret_cast<char*>(a.data()),
                                             part.bytes()))
                  .ok());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(a[i], i);
  EXPECT_EQ(reader->ReadStrings("c")->at(0).size(), 500u);
  for (const Shard& shard : shards) {
    size_t bytes = 0;
    for (const auto& p : shard) {
      if (p.key != "c") bytes += p.tensor.bytes();
    }
    EXPECT_LE(bytes, 120u);
  }
  const std::vector<std::string> names = *fs.List("f");
  for (const std::string& name : names) {
    EXPECT_EQ(name.find(".tmp"), std::string::npos) << name;
  }
  EXPECT_FALSE(ShardsBySize(values, 0).ok());
}

}  // namespace
}  // namespace headrace
