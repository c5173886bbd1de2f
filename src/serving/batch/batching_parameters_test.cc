#include "serving/batch/batching_parameters.h"

#include "base/files/files.h"
#include "gtest/gtest.h"
#include "serving/proto_file.h"

namespace headrace::serving {
namespace {

StatusOr<BatchingOptions> Checked(const std::string& text) {
  BatchingParameters p;
  HR_RETURN_IF_ERROR(ReadProtoConfig(text, "b.txt", &p));
  return CheckBatchingParameters(p);
}

TEST(BatchingParameters, Defaults) {
  const auto o = Checked("");
  ASSERT_TRUE(o.ok()) << o.status();
  EXPECT_EQ(o->max_batch_size, 1000);
  EXPECT_EQ(o->batch_timeout_micros, 0);
  EXPECT_EQ(o->max_enqueued_batches, 10);
  EXPECT_GE(o->num_batch_threads, 1);
  EXPECT_EQ(o->thread_pool_name, "batch_threads");
  EXPECT_FALSE(o->pad_variable_length_inputs);
  EXPECT_FALSE(o->enable_large_batch_splitting);
  EXPECT_EQ(o->max_execution_batch_size, 1000);
}

TEST(BatchingParameters, AllFields) {
  const auto o = Checked(R"(
      max_batch_size { value: 128 }
      batch_timeout_micros: { value: 5000 },  # a comment
      max_enqueued_batches { value: 7 }
      num_batch_threads { value: 3 }
      thread_pool_name { value: 'pool' }
      allowed_batch_sizes: 8 allowed_batch_sizes: [16, 32]
      pad_variable_length_inputs: true
      enable_large_batch_splitting { value: true }
      max_execution_batch_size { value: 32 })");
  ASSERT_TRUE(o.ok()) << o.status();
  EXPECT_EQ(o->max_batch_size, 128);
  EXPECT_EQ(o->batch_timeout_micros, 5000);
  EXPECT_EQ(o->max_enqueued_batches, 7);
  EXPECT_EQ(o->num_batch_threads, 3);
  EXPECT_EQ(o->thread_pool_name, "pool");
  EXPECT_EQ(o->allowed_batch_sizes, (std::vector<int64_t>{8, 16, 32}));
  EXPECT_TRUE(o->pad_variable_length_inputs);
  EXPECT_TRUE(o->enable_large_batch_splitting);
  EXPECT_EQ(o->max_execution_batch_size, 32);
}

TEST(BatchingParameters, ExecutionSizeFollowsTheRequests) {
  EXPECT_EQ(Checked("max_batch_size { value: 32 }")->max_execution_batch_size,
            32);
  // Without splitting the field says nothing.
  EXPECT_EQ(Checked("max_batch_size { value: 32 } "
                    "max_execution_batch_size { value: 8 }")
                ->max_execution_batch_size,
            32);
  EXPECT_EQ(Checked("max_batch_size { value: 3000 } "
                    "enable_large_batch_splitting { value: true }")
                ->max_execution_batch_size,
            1000);
}

TEST(BatchingParameters, Refused) {
  const struct {
    const char *text, *error;
  } rows[] = {
      {"max_batch_size { value: 0 }", "max_batch_size must be positive; was 0"},
      {"batch_timeout_micros { value: -1 }",
       "batch_timeout_micros must be non-negative; was -1"},
      {"max_enqueued_batches { value: 0 }",
       "max_enqueued_batches must be positive; was 0"},
      {"num_batch_threads { value: -3 }",
       "num_batch_threads must be positive; was -3"},
      {"num_batch_threads { value: 1000000 }",
       "num_batch_threads must be at most 4096; was 1000000"},
      {"max_batch_size { value: 32 } allowed_batch_sizes: [8, 16]",
       "Last entry in allowed_batch_sizes must match max_batch_size; last "
       "entry was 16, expected 32"},
      {"max_batch_size { value: 32 } allowed_batch_sizes: [8, 8, 32]",
       "allowed_batch_sizes entries must be monotonically increasing"},
      {"max_batch_size { value: 32 } allowed_batch_sizes: [0, 32]",
       "allowed_batch_sizes entries must be monotonically increasing"},
      {"max_batch_size { value: 32 } allowed_batch_sizes: 32 "
       "enable_large_batch_splitting { value: true } "
       "max_execution_batch_size { value: 16 }",
       "Last entry in allowed_batch_sizes must match max_batch_size; last "
       "entry was 32, expected 16"},
      {"max_batch_size { value: 8 } enable_large_batch_splitting { value: "
       "true } max_execution_batch_size { value: 16 }",
       "max_execution_batch_size must not be larger than max_batch_size; they "
       "are 16 and 8"},
      {"max_batch_size: 3",
       "Invalid protobuf file: 'b.txt', line 1, column 17: Expected \"{\", "
       "found \"3\"."},
      {"max_size { value: 3 }", "Invalid protobuf file: 'b.txt'"},
  };
  for (const auto& row : rows) {
    const Status s = Checked(row.text).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << row.text;
    EXPECT_NE(s.message().find(row.error), std::string::npos) << s;
  }
}

TEST(BatchingParameters, FilesOfModels) {
  auto none = ReadModelBatching("ram://batching_none/1");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->has_value());
  std::string path;
  FileSystem* fs = *FileSystemFor("ram://batching_some/1", &path);
  ASSERT_TRUE(CreateDirectories(fs, path).ok());
  const std::string file = JoinPath(path, "batching_params.pbtxt");
  ASSERT_TRUE(
      WriteFileAtomically(fs, file, "max_batch_size { value: 4 }").ok());
  const auto some = ReadModelBatching("ram://batching_some/1");
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ((*some)->max_batch_size, 4);
  ASSERT_TRUE(WriteFileAtomically(fs, file, "max_batch_").ok());
  EXPECT_NE(ReadModelBatching("ram://batching_some/1")
                .status()
                .message()
                .find("Invalid protobuf file: "
                      "'ram://batching_some/1/batching_params.pbtxt'"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::serving
