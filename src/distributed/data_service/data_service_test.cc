// The data service over the transport within the process: a dispatcher, workers
// and readers, and what a dispatcher finds in its journal.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "data/iterate/test_walk.h"
#include "distributed/data_service/ask.h"
#include "distributed/data_service/client.h"
#include "distributed/data_service/methods.h"
#include "distributed/data_service/policy.h"
#include "distributed/data_service/servers.h"
#include "distributed/local_transport.h"
#include "function/dataset_writer.h"
#include "gtest/gtest.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::distributed::data_service {
namespace {

std::string GraphOf(const DatasetPtr& dataset) {
  tensorflow::GraphDef graph;
  EXPECT_TRUE(WriteDatasetGraph(*dataset, nullptr, {true, false}, &graph).ok());
  return SortedBytes(graph);
}

class DataServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto network = LocalNetwork::Create();
    ASSERT_TRUE(network.ok()) << network.status();
    network_ = *network;
    transport_ = network_->Of("d:1");
    channels_ = ChannelsOver(*transport_);
  }
  void TearDown() override {
    for (auto& worker : workers_) worker->Stop();
    if (server_) server_->Stop();
  }

  void StartDispatcher(DispatcherOptions options = {}) {
    auto made = DispatchServer::Make(*transport_, "d:1", std::move(options));
    ASSERT_TRUE(made.ok()) << made.status();
    server_ = std::move(*made);
    ASSERT_TRUE(server_->Start().ok());
  }
  void StartWorker(const std::string& address) {
    WorkerOptions options;
    options.dispatcher = "d:1";
    options.address = address;
    transports_.push_back(network_->Of(address));
    auto made = WorkerServer::Make(*transports_.back(), address, options);
    ASSERT_TRUE(made.ok()) << made.status();
    workers_.push_back(std::move(*made));
    const Status s = workers_.back()->Start();
    ASSERT_TRUE(s.ok()) << s;
  }

  std::string Register(const DatasetPtr& dataset, const std::string& id = "") {
    RegisterDatasetRequest request;
    request.mutable_dataset()->set_id(id);
    request.mutable_dataset()->set_graph(GraphOf(dataset));
    request.mutable_dataset()->set_cardinality(dataset->Cardinality());
    RegisterDatasetResponse response;
    const Status s =
        Ask(*channels_, "d:1", kRegisterDataset, request, &response);
    EXPECT_TRUE(s.ok()) << s;
    return response.id();
  }
  StatusOr<std::shared_ptr<Reader>> Open(const std::string& id, Policy policy,
                                         const std::string& job = "",
                                         int64_t consumers = 0,
                                         int64_t consumer = -1) {
    ReaderOptions options;
    options.dispatcher = "d:1";
    options.iteration.set_dataset_id(id);
    options.iteration.set_policy(policy);
    options.iteration.set_job_name(job);
    options.iteration.set_num_consumers(consumers);
    options.consumer = consumer;
    return Reader::Open(std::move(options), channels_);
  }
  static std::vector<int64_t> All(Reader& reader, int most = 10'000) {
    std::vector<int64_t> out;
    while (static_cast<int>(out.size()) < most) {
      Element element;
      bool end = false;
      const Status s = reader.Next(&element, &end);
      EXPECT_TRUE(s.ok()) << s;
      if (!s.ok() || end) break;
      out.push_back(element[0].scalar<int64_t>());
    }
    return out;
  }
  std::vector<int64_t> Read(const DatasetPtr& dataset, Policy policy) {
    auto reader = Open(Register(dataset), policy);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return {};
    std::vector<int64_t> all = All(**reader);
    (*reader)->Close();
    return all;
  }

  std::shared_ptr<LocalNetwork> network_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<Channels> channels_;
  std::unique_ptr<DispatchServer> server_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<WorkerServer>> workers_;
};

std::vector<int64_t> UpTo(int64_t n) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(i);
  return out;
}
std::vector<int64_t> Sorted(std::vector<int64_t> v) {
  std::sort(v.begin(), v.end());
  return v;
}

TEST_F(DataServiceTest, OneWorkerGivesAllInOrder) {
  StartDispatcher();
  StartWorker("w:1");
  EXPECT_EQ(Read(Pipeline().Range(100).Finish(), kOff), UpTo(100));
  EXPECT_EQ(Read(Pipeline().Range(0).Finish(), kOff), UpTo(0));
}

TEST_F(DataServiceTest, DynamicSplitsGiveEachElementOnce) {
  StartDispatcher();
  StartWorker("w:1");
  StartWorker("w:2");
  EXPECT_EQ(Sorted(Read(Pipeline().Range(50).Finish(), kDynamic)), UpTo(50));
  // Two rounds of a source.
  const auto twice = Pipeline().Range(3).Count("Repeat", 2).Finish();
  EXPECT_EQ(Sorted(Read(twice, kDynamic)),
            (std::vector<int64_t>{0, 0, 1, 1, 2, 2}));
  // Without division each worker gives all.
  EXPECT_EQ(Sorted(Read(Pipeline().Range(2).Finish(), kOff)),
            (std::vector<int64_t>{0, 0, 1, 1}));
}

TEST_F(DataServiceTest, StaticSharesAreThoseOfTheList) {
  DispatcherOptions options;
  options.worker_addresses = {"w:1", "w:2"};
  StartDispatcher(options);
  StartWorker("w:1");
  const auto range = Pipeline().Range(10).Finish();
  EXPECT_EQ(Read(range, kData), (std::vector<int64_t>{0, 2, 4, 6, 8}));
  StartWorker("w:2");
  EXPECT_EQ(Sorted(Read(range, kFileOrData)), UpTo(10));
  StartWorker("stranger:1");
  const auto none = Open(Register(range), kData);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DataServiceTest, AJobIsSharedAndTheLateComeToItsEnd) {
  StartDispatcher();
  StartWorker("w:1");
  const std::string id = Register(Pipeline().Range(40).Finish());
  auto a = Open(id, kOff, "job"), b = Open(id, kOff, "job");
  ASSERT_TRUE(a.ok() && b.ok());
  std::vector<int64_t> all = All(**a, 5);
  for (const int64_t x : All(**b)) all.push_back(x);
  for (const int64_t x : All(**a)) all.push_back(x);
  EXPECT_EQ(Sorted(all), UpTo(40));
  auto late = Open(id, kOff, "job");
  ASSERT_TRUE(late.ok());
  EXPECT_TRUE(All(**late).empty());
  EXPECT_EQ(Open(id, kDynamic, "job").status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const auto& reader : {*a, *b, *late}) reader->Close();
}

TEST_F(DataServiceTest, WorkersMayComeLate) {
  StartDispatcher();
  auto reader = Open(Register(Pipeline().Range(5).Finish()), kDynamic);
  ASSERT_TRUE(reader.ok());
  StartWorker("w:1");
  EXPECT_EQ(All(**reader), UpTo(5));
  (*reader)->Close();
}

TEST_F(DataServiceTest, ALostWorkerDoesNotHoldOthersUp) {
  DispatcherOptions options;
  options.worker_timeout = std::chrono::milliseconds(300);
  StartDispatcher(options);
  StartWorker("w:1");
  StartWorker("w:2");
  auto reader = Open(Register(Pipeline().Range(1000).Finish()), kDynamic);
  ASSERT_TRUE(reader.ok());
  std::vector<int64_t> all = All(**reader, 100);
  workers_[0]->Stop();
  for (const int64_t x : All(**reader)) all.push_back(x);
  // At most once, and all but what the lost one had taken.
  const std::set<int64_t> unique(all.begin(), all.end());
  EXPECT_EQ(unique.size(), all.size());
  EXPECT_GE(all.size(), 950u);
  (*reader)->Close();
}

TEST_F(DataServiceTest, CoordinatedConsumersGetOneElementEachOfARound) {
  StartDispatcher();
  StartWorker("w:1");
  const auto endless = Pipeline().Range(1000).Count("Repeat", -1).Finish();
  const std::string id = Register(endless);
  auto a = Open(id, kOff, "job", 2, 0), b = Open(id, kOff, "job", 2, 1);
  ASSERT_TRUE(a.ok() && b.ok());
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(All(**a, 1), std::vector<int64_t>{2 * i});
    EXPECT_EQ(All(**b, 1), std::vector<int64_t>{2 * i + 1});
  }
  // Another worker takes its turns from a round on that both have agreed to.
  StartWorker("w:2");
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t x = All(**a, 1).at(0), y = All(**b, 1).at(0);
    EXPECT_EQ(x + 1, y);
  }
  for (const auto& reader : {*a, *b}) reader->Close();
}

TEST_F(DataServiceTest, ABrokenDatasetIsSaidToWhoReadsIt) {
  StartDispatcher();
  StartWorker("w:1");
  tensorflow::GraphDef graph;
  graph.add_node()->set_op("NoSuchOp");
  RegisterDatasetRequest request;
  request.mutable_dataset()->set_graph(graph.SerializeAsString());
  RegisterDatasetResponse response;
  ASSERT_TRUE(
      Ask(*channels_, "d:1", kRegisterDataset, request, &response).ok());
  auto reader = Open(response.id(), kOff);
  ASSERT_TRUE(reader.ok());
  Element element;
  bool end = false;
  EXPECT_FALSE((*reader)->Next(&element, &end).ok());
  (*reader)->Close();
  EXPECT_EQ(Open("nothing", kOff).status().code(), absl::StatusCode::kNotFound);
}

// --- the journal ---

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/data_service_journal_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  DispatcherUpdate Dataset(const std::string& id) {
    DispatcherUpdate update;
    update.mutable_dataset()->set_id(id);
    update.mutable_dataset()->set_graph("graph of " + id);
    return update;
  }
  std::string path() const { return folder_ + "/dispatcher.journal"; }

  std::string folder_;
};

TEST_F(JournalTest, AKillAtAnyByteLeavesWhatWasBefore) {
  {
    DispatcherState state;
    auto journal = Journal::Open(folder_, &state);
    ASSERT_TRUE(journal.ok()) << journal.status();
    for (const char* id : {"a", "b", "c"}) {
      ASSERT_TRUE((*journal)->Add(Dataset(id)).ok());
    }
  }
  std::ifstream in(path(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  size_t last = 0;
  for (size_t n = 0; n <= whole.size(); ++n) {
    std::ofstream(path(), std::ios::binary | std::ios::trunc)
        << whole.substr(0, n);
    DispatcherState state;
    const auto journal = Journal::Open(folder_, &state);
    ASSERT_TRUE(journal.ok()) << n << ": " << journal.status();
    EXPECT_GE(state.datasets.size(), last);
    last = state.datasets.size();
  }
  EXPECT_EQ(last, 3u);
}

TEST_F(JournalTest, WhatIsDamagedIsNotTakenUp) {
  std::filesystem::create_directories(folder_);
  std::ofstream(path(), std::ios::binary) << std::string(100, 'x');
  DispatcherState state;
  EXPECT_EQ(Journal::Open(folder_, &state).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(JournalTest, ADispatcherGoesOnWhereItsPredecessorWas) {
  DispatcherOptions options;
  options.fault_tolerant = true;
  options.work_dir = folder_;
  int64_t client = 0, iteration = 0;
  const std::string graph = GraphOf(Pipeline().Range(7).Finish());
  for (int life = 0; life < 2; ++life) {
    auto dispatcher = Dispatcher::Make(options);
    ASSERT_TRUE(dispatcher.ok()) << dispatcher.status();
    WorkerHeartbeatRequest beat;
    beat.set_address("w:1");
    beat.set_life(9);
    WorkerHeartbeatResponse work;
    if (life == 0) {
      RegisterDatasetRequest request;
      request.mutable_dataset()->set_id("d");
      request.mutable_dataset()->set_graph(graph);
      RegisterDatasetResponse response;
      ASSERT_TRUE((*dispatcher)->Register(request, &response).ok());
      OpenIterationRequest open;
      open.mutable_iteration()->set_dataset_id("d");
      open.mutable_iteration()->set_policy(kDynamic);
      OpenIterationResponse opened;
      ASSERT_TRUE((*dispatcher)->Open(open, &opened).ok());
      client = opened.client_id();
    }
    ASSERT_TRUE((*dispatcher)->Heartbeat(beat, &work).ok());
    ASSERT_EQ(work.new_tasks_size(), 1);
    iteration = work.new_tasks(0).iteration_id();
    ClientHeartbeatRequest ask;
    ask.set_client_id(client);
    ClientHeartbeatResponse news;
    ASSERT_TRUE((*dispatcher)->Heartbeat(ask, &news).ok());
    EXPECT_EQ(news.tasks_size(), 1);
    for (int64_t i = 0; i < 3; ++i) {
      GetSplitRequest wants;
      wants.set_iteration_id(iteration);
      GetSplitResponse split;
      ASSERT_TRUE((*dispatcher)->Split(wants, &split).ok());
      EXPECT_EQ(split.index(), 3 * life + i);
    }
  }
}

TEST_F(JournalTest, WhatNobodyReadsIsDropped) {
  DispatcherOptions options;
  options.gc_interval = options.gc_timeout = std::chrono::milliseconds(1);
  auto dispatcher = *Dispatcher::Make(options);
  RegisterDatasetRequest request;
  request.mutable_dataset()->set_id("d");
  request.mutable_dataset()->set_graph(GraphOf(Pipeline().Range(7).Finish()));
  RegisterDatasetResponse response;
  ASSERT_TRUE(dispatcher->Register(request, &response).ok());
  OpenIterationRequest open;
  open.mutable_iteration()->set_dataset_id("d");
  open.mutable_iteration()->set_job_name("job");
  OpenIterationResponse opened;
  ASSERT_TRUE(dispatcher->Open(open, &opened).ok());
  WorkerHeartbeatRequest beat;
  beat.set_address("w:1");
  WorkerHeartbeatResponse work;
  ASSERT_TRUE(dispatcher->Heartbeat(beat, &work).ok());
  ASSERT_EQ(work.new_tasks_size(), 1);
  ASSERT_TRUE(dispatcher->Release(opened.client_id()).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  dispatcher->Sweep();
  beat.add_tasks(work.new_tasks(0).id());
  ASSERT_TRUE(dispatcher->Heartbeat(beat, &work).ok());
  EXPECT_EQ(work.new_tasks_size(), 0);
  EXPECT_EQ(work.ended_tasks_size(), 1);
}

}  // namespace
}  // namespace headrace::distributed::data_service
