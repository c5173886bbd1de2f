#include "train/checkpoint_state.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "gtest/gtest.h"
#include "train/checkpoint.h"

namespace headrace {
namespace {

TEST(CheckpointState, PathsAreRelativeInTheFile) {
  MemoryFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/f").ok());
  CheckpointState state;
  state.latest = "/f/c-2";
  state.all = {"/elsewhere/c-1", "/f/c-2"};
  state.timestamps = {1.5, 2.5};
  ASSERT_TRUE(WriteCheckpointState(&fs, "/f", state).ok());
  EXPECT_EQ(*ReadWholeFile(&fs, "/f/checkpoint"),
            "model_checkpoint_path: \"c-2\"\n"
            "all_model_checkpoint_paths: \"/elsewhere/c-1\"\n"
            "all_model_checkpoint_paths: \"c-2\"\n"
            "all_model_checkpoint_timestamps: 1.5\n"
            "all_model_checkpoint_timestamps: 2.5\n");
  const auto read = *ReadCheckpointState(&fs, "/f");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->all, state.all);
  EXPECT_EQ(*LatestCheckpoint(&fs, "/f"), "");  // its files are not there
}

TEST(CheckpointState, MissingAndDamaged) {
  MemoryFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/f").ok());
  EXPECT_FALSE(ReadCheckpointState(&fs, "/f")->has_value());
  EXPECT_EQ(*LatestCheckpoint(&fs, "/f"), "");
  for (const char* text : {"model_checkpoint_path: \"c", "{", "", "x: y z"}) {
    ASSERT_TRUE(WriteFileAtomically(&fs, "/f/checkpoint", text).ok());
    EXPECT_EQ(ReadCheckpointState(&fs, "/f").status().code(),
              absl::StatusCode::kDataLoss)
        << text;
  }
}

TEST(CheckpointRotation, KeepsTheNewestAndGoesOn) {
  const std::string folder = "ram://rotation_test";
  std::string local;
  FileSystem* fs = *FileSystemFor(folder, &local);
  Checkpoint checkpoint(std::make_shared<Trackable>());
  const auto save = [&](CheckpointRotation& rotation, int i) {
    const std::string prefix = absl::StrCat(local, "/c-", i);
    EXPECT_TRUE(checkpoint.Write(absl::StrCat(folder, "/c-", i)).ok());
    const Status added = rotation.Added(prefix);
    EXPECT_TRUE(added.ok()) << added;
  };
  CheckpointRotation::Options options;
  options.max_to_keep = 2;
  auto rotation = *CheckpointRotation::Open(fs, local, options);
  for (int i = 1; i <= 4; ++i) save(rotation, i);
  auto again = *CheckpointRotation::Open(fs, local, options);
  EXPECT_EQ(again.latest(), local + "/c-4");
  save(again, 5);
  const std::vector<std::string> want = {local + "/c-4", local + "/c-5"};
  EXPECT_EQ(again.checkpoints(), want);
  EXPECT_EQ(fs->List(local)->size(), 5u);
  EXPECT_EQ(*LatestCheckpoint(fs, local), local + "/c-5");
}

// A process that saves without pause is killed at many moments: what its state
// file names is always a whole checkpoint.
TEST(CheckpointRotation, KilledAtAnyMoment) {
  std::string folder = testing::TempDir() + "/hr_killed_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  FileSystem* const fs = PosixFileSystem();
  const auto graph = [](std::shared_ptr<Variable> v) {
    auto root = std::make_shared<Trackable>();
    EXPECT_TRUE(root->Attach("v", std::make_shared<VariableNode>(v, "v")).ok());
    return root;
  };
  const auto variable = std::make_shared<Variable>(DType::kInt64, Shape{1000});
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      CheckpointRotation::Options options;
      options.max_to_keep = 2;
      auto rotation = CheckpointRotation::Open(fs, folder, options);
      for (int64_t i = 0; rotation.ok(); ++i) {
        variable->Assign(
            Tensor::Vector<int64_t>(std::vector<int64_t>(1000, i)));
        const std::string prefix = absl::StrCat(folder, "/c-", round, "-", i);
        if (!Checkpoint(graph(variable)).Write(prefix).ok() ||
            !rotation->Added(prefix).ok()) {
          break;
        }
      }
      _exit(1);
    }
    usleep(20000 + 3711 * round);
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto latest = LatestCheckpoint(fs, folder);
    ASSERT_TRUE(latest.ok()) << latest.status();
    if (latest->empty()) continue;
    const auto restored = Checkpoint(graph(variable)).Restore(*latest);
    ASSERT_TRUE(restored.ok()) << restored.status();
    const Tensor value = *variable->Read("v");
    for (const int64_t x : value.span<int64_t>()) {
      ASSERT_EQ(x, value.data<int64_t>()[0]);
    }
  }
  EXPECT_TRUE(DeleteRecursively(fs, folder).ok());
}

}  // namespace
}  // namespace headrace
