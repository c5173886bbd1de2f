#include "distributed/request_ids.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace headrace::distributed {
namespace {

Status Track(RequestIds& ids, int64_t id) {
  tensorflow::RecvTensorRequest request;
  request.set_request_id(id);
  return ids.Track(id, "RecvTensor", request);
}

TEST(RequestIds, TheLastOnesAreKnown) {
  RequestIds ids;
  std::vector<int64_t> given;
  std::set<int64_t> all;
  // Some follow each other, as those of peers that count.
  for (int64_t i = 0; i < 250'000; ++i) {
    const int64_t id = i % 3 == 0 ? i + 1 : NewRequestId();
    if (!all.insert(id).second) continue;
    ASSERT_EQ(Track(ids, id), OkStatus()) << i;
    given.push_back(id);
  }
  const size_t first = given.size() - RequestIds::kRemembered;
  for (size_t i = given.size(); i-- > first;) {
    ASSERT_TRUE(absl::IsAborted(Track(ids, given[i]))) << i;
  }
  // Those before are forgotten, and remembered anew.
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(Track(ids, given[i]), OkStatus());
    ASSERT_TRUE(absl::IsAborted(Track(ids, given[i])));
  }
  ASSERT_EQ(Track(ids, given[first]), OkStatus());
  ASSERT_TRUE(absl::IsAborted(Track(ids, given.back())));
}

TEST(RequestIds, NoneIsNoNumber) {
  RequestIds ids;
  EXPECT_EQ(Track(ids, 0), OkStatus());
  EXPECT_EQ(Track(ids, 0), OkStatus());
  EXPECT_EQ(Track(ids, -1), OkStatus());
  EXPECT_EQ(Track(ids, -1),
            Aborted("The same RecvTensor request was received twice. "
                    "request_id: -1"));
}

}  // namespace
}  // namespace headrace::distributed
