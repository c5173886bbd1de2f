#include "simulator/step_task.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "distributed/messages.h"
#include "distributed/wire/fields.h"
#include "distributed/wire/methods.h"
#include "distributed/wire/piece_reader.h"
#include "distributed/worker/pull.h"
#include "headrace/worker.pb.h"

namespace headrace::simulator {
namespace {

using distributed::Answer;
using distributed::AnswerOf;
using distributed::Bytes;
using distributed::ReadMessage;
using distributed::ServerCall;
using distributed::WriteMessage;
namespace worker = distributed::worker;

// Beside the tensor, RecvTensorResponse's head has its shape and a time.
constexpr int64_t kHead = 32;
// In the place of a session's handle, of as many letters.
constexpr char kSession[] = "0123456789abcdef";
constexpr char kInParts[] = "in-parts";

// Gives a value in parts, one after the other.
void SendParts(const std::shared_ptr<ServerCall>& call, int64_t left) {
  if (left == 0) return call->Finish(AnswerOf(OkStatus()));
  const int64_t part =
      std::min(left, static_cast<int64_t>(distributed::kPullPart));
  call->Send(Fill(part), [call, left, part](bool goes_on) {
    if (goes_on) SendParts(call, left - part);
  });
}

// Gives values as they come: those that are there go together, up to a part,
// when the one before it has gone.
class Together : public std::enable_shared_from_this<Together> {
 public:
  Together(std::shared_ptr<ServerCall> call, int count)
      : call_(std::move(call)), left_(count) {}

  void Came(int number, int64_t bytes, bool in_parts) {
    there_.push_back({number, in_parts ? 0 : bytes + kHead, in_parts});
    if (!std::exchange(sends_, true)) Send();
  }

 private:
  struct Value {
    int number;
    int64_t bytes;
    bool in_parts;
  };
  void Send() {
    int64_t bytes = 0;
    size_t count = 0;
    while (count < there_.size() &&
           bytes < static_cast<int64_t>(distributed::kPullPart)) {
      bytes += there_[count++].bytes;
    }
    if (count == 0) {
      sends_ = false;
      if (left_ == 0) call_->Finish(AnswerOf(OkStatus()));
      return;
    }
    std::string head;
    distributed::PutVarint(count, &head);
    Bytes values;
    for (size_t i = 0; i < count; ++i) {
      distributed::PutVarint(there_[i].number, &head);
      distributed::PutVarint(there_[i].in_parts ? 1 : 0, &head);
      if (there_[i].bytes > 0) values.Append(Fill(there_[i].bytes));
    }
    there_.erase(there_.begin(), there_.begin() + static_cast<int64_t>(count));
    left_ -= static_cast<int>(count);
    Bytes part(head);
    part.Append(std::move(values));
    call_->Send(std::move(part), [self = shared_from_this()](bool goes_on) {
      if (goes_on) self->Send();
    });
  }

  const std::shared_ptr<ServerCall> call_;
  int left_;  // that were not sent
  bool sends_ = false;
  std::vector<Value> there_;
};

Bytes ReceiveRequest(int64_t step, const std::string& key) {
  tensorflow::RecvTensorRequest request;
  request.set_step_id(step);
  request.set_rendezvous_key(key);
  request.set_request_id(int64_t{1} << 62);
  return WriteMessage(request);
}

}  // namespace

PartPlan PlanOf(const distributed::Part& part,
                const std::map<std::string, int64_t>& bytes) {
  PartPlan plan;
  plan.task = part.task.ToString();
  std::map<std::string, int> numbers;
  for (const auto& def : part.graph.node()) {
    numbers[def.name()] = static_cast<int>(plan.nodes.size());
    PartPlan::Node node;
    node.name = def.name();
    node.op = def.op();
    if (def.op() == "_Send" || def.op() == "_Recv") {
      node.key = def.attr().at("tensor_name").s();
      DeviceName from;
      if (DeviceName::Parse(def.attr().at("send_device").s(), &from)) {
        node.from = from.Task().ToString();
      }
    }
    plan.nodes.push_back(std::move(node));
  }
  for (const auto& def : part.graph.node()) {
    const int own = numbers[def.name()];
    for (const std::string& input : def.input()) {
      std::string of = input.substr(input.starts_with("^") ? 1 : 0);
      of = of.substr(0, of.find(':'));
      ++plan.nodes[own].inputs;
      plan.nodes[numbers[of]].readers.push_back(own);
      const auto size = bytes.find(of);
      if (def.op() == "_Send" && size != bytes.end()) {
        plan.nodes[own].bytes = size->second;
      }
    }
  }
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PartPlan::Node& node = plan.nodes[i];
    if (node.op == "_Recv") {
      plan.together[node.from].push_back(static_cast<int>(i));
    }
  }
  std::erase_if(plan.together,
                [](const auto& of) { return of.second.size() < 2; });
  return plan;
}

std::string StepTask::AddressOf(const std::string& task) {
  return absl::StrReplaceAll(task, {{":", "."}});
}

StepTask::StepTask(World& world, const std::string& task, Does does,
                   Status* failure)
    : world_(world),
      task_(task),
      does_(std::move(does)),
      failure_(failure),
      transport_(world.Of(AddressOf(task))) {}

Status StepTask::Listen() {
  distributed::ListenOptions listen;
  listen.address = AddressOf(task_);
  listen.methods[worker::kRunGraph.path] =
      [this](const Call& call, const Bytes& bytes) { AnswerRun(call, bytes); };
  listen.methods[worker::kRecvTensor.path] = [this](const Call& call,
                                                    const Bytes& bytes) {
    AnswerReceive(call, bytes);
  };
  listen.methods[worker::kPullTensor.path] =
      [this](const Call& call, const Bytes& bytes) { AnswerPull(call, bytes); };
  listen.methods[worker::kPullTensors.path] = [this](const Call& call,
                                                     const Bytes& bytes) {
    AnswerPullMany(call, bytes);
  };
  listen.methods[worker::kCleanupGraph.path] = [](const Call& call,
                                                  const Bytes&) {
    call->Finish(AnswerOf(OkStatus()));
  };
  std::string error;
  listener_ = transport_->Listen(std::move(listen), &error);
  return listener_ ? OkStatus() : Internal(error);
}

distributed::Channel& StepTask::To(const std::string& task) {
  auto& channel = channels_[task];
  if (!channel) channel = transport_->Connect(AddressOf(task), {});
  return *channel;
}

std::function<void(const Answer&)> StepTask::Checked(
    std::function<void(const Answer&)> f) {
  return [this, f = std::move(f)](const Answer& answer) {
    if (answer.ok()) return f(answer);
    if (failure_->ok()) *failure_ = distributed::StatusOf(answer);
  };
}

void StepTask::RunStep(int64_t step,
                       const std::vector<std::pair<std::string, int>>& parts,
                       std::function<void()> done) {
  const auto left = std::make_shared<size_t>(parts.size());
  const auto one_less = [this, step, parts, left, done = std::move(done)] {
    if (--*left > 0) return;
    // Behind the step every task is told to forget it, and nobody waits for
    // that.
    tensorflow::CleanupGraphRequest forget;
    forget.set_step_id(step);
    for (const auto& [task, plan] : parts) {
      if (task == task_) continue;
      To(task).Start(worker::kCleanupGraph.path, WriteMessage(forget), {},
                     Checked([](const Answer&) {}));
    }
    done();
  };
  for (const auto& [task, plan] : parts) {
    if (task == task_) continue;
    tensorflow::RunGraphRequest request;
    request.set_session_handle(kSession);
    request.set_create_worker_session_called(true);
    request.set_graph_handle(absl::StrCat(plan));
    request.set_step_id(step);
    request.set_request_id(int64_t{1} << 62);
    To(task).Start(worker::kRunGraph.path, WriteMessage(request), {},
                   Checked([one_less](const Answer&) { one_less(); }));
  }
  for (const auto& [task, plan] : parts) {
    if (task == task_) RunPart(plan, step, one_less);
  }
}

// --- parts ---

struct StepTask::Run {
  const PartPlan* plan = nullptr;
  int64_t step = 0;
  std::vector<int> waits;  // for how many inputs
  size_t left = 0;
  std::function<void()> done;
  // Nodes whose values are there that were asked for together, and those that
  // wait for theirs.
  std::set<int> came, awaits;
};

void StepTask::RunPart(int plan, int64_t step, std::function<void()> done) {
  const auto run = std::make_shared<Run>();
  run->plan = &plans_[plan];
  run->step = step;
  run->left = run->plan->nodes.size();
  run->done = std::move(done);
  for (const auto& node : run->plan->nodes) run->waits.push_back(node.inputs);
  for (const auto& [from, nodes] : run->plan->together) {
    ReceiveTogether(run, from, nodes);
  }
  for (size_t i = 0; i < run->plan->nodes.size(); ++i) {
    if (run->plan->nodes[i].inputs == 0) Begin(run, static_cast<int>(i));
  }
}

void StepTask::Begin(const std::shared_ptr<Run>& run, int node) {
  const PartPlan::Node& n = run->plan->nodes[node];
  const auto done = [this, run, node] { Done(run, node); };
  if (n.op == "_Send") {
    Give({run->step, n.key}, n.bytes);
  } else if (n.op == "_Recv" && run->plan->together.contains(n.from)) {
    if (run->came.contains(node)) return done();
    run->awaits.insert(node);
    return;
  } else if (n.op == "_Recv") {
    return Receive(n, run->step, done);
  } else if (does_(task_, n, run->step, done)) {
    return;
  }
  done();
}

void StepTask::Done(const std::shared_ptr<Run>& run, int node) {
  for (const int reader : run->plan->nodes[node].readers) {
    if (--run->waits[reader] == 0) Begin(run, reader);
  }
  if (--run->left == 0) run->done();
}

// --- values that cross ---

void StepTask::Give(const Key& key, int64_t bytes) {
  const auto at = values_.find(key);
  if (at == values_.end() || !at->second.wanted) {
    values_[key] = {true, bytes, nullptr};
    return;
  }
  const auto wanted = std::move(at->second.wanted);
  values_.erase(at);
  wanted(bytes);
}

void StepTask::Wait(const Key& key, std::function<void(int64_t)> wanted) {
  const auto at = values_.find(key);
  if (at == values_.end()) {
    values_[key].wanted = std::move(wanted);
    return;
  }
  const int64_t bytes = at->second.bytes;
  values_.erase(at);
  wanted(bytes);
}

void StepTask::Receive(const PartPlan::Node& node, int64_t step,
                       std::function<void()> done) {
  if (large_.contains(node.key)) return Pull(node, step, std::move(done));
  To(node.from).Start(worker::kRecvTensor.path, ReceiveRequest(step, node.key),
                      {},
                      Checked([this, &node, step, done](const Answer& answer) {
                        if (!answer.metadata.contains(kInParts)) return done();
                        large_.insert(node.key);
                        Pull(node, step, done);
                      }));
}

void StepTask::Pull(const PartPlan::Node& node, int64_t step,
                    std::function<void()> done) {
  distributed::CallOptions options;
  options.on_part = [](const Bytes&, const auto& next) { next(); };
  To(node.from).Start(
      worker::kPullTensor.path, ReceiveRequest(step, node.key), options,
      Checked([done = std::move(done)](const Answer&) { done(); }));
}

void StepTask::Came(const std::shared_ptr<Run>& run, int node) {
  run->came.insert(node);
  if (run->awaits.contains(node)) Done(run, node);
}

void StepTask::ReceiveTogether(const std::shared_ptr<Run>& run,
                               const std::string& from,
                               const std::vector<int>& nodes) {
  PullTensorsRequest request;
  request.set_step_id(run->step);
  request.set_request_id(int64_t{1} << 62);
  std::vector<int> asked;
  for (const int i : nodes) {
    const PartPlan::Node& node = run->plan->nodes[i];
    if (large_.contains(node.key)) {
      Pull(node, run->step, [this, run, i] { Came(run, i); });
      continue;
    }
    request.add_rendezvous_key(node.key);
    asked.push_back(i);
  }
  if (asked.empty()) return;
  distributed::CallOptions options;
  options.on_part = [this, run, asked](const Bytes& part, const auto& next) {
    distributed::PieceReader reader(part);
    uint64_t count = 0, number = 0, in_parts = 0;
    for (reader.ReadVarint(&count); count > 0; --count) {
      if (!reader.ReadVarint(&number) || !reader.ReadVarint(&in_parts) ||
          number >= asked.size()) {
        *failure_ = Internal("values that nobody asked for");
        return;
      }
      const int i = asked[number];
      if (in_parts == 0) {
        Came(run, i);
        continue;
      }
      const PartPlan::Node& node = run->plan->nodes[i];
      large_.insert(node.key);
      Pull(node, run->step, [this, run, i] { Came(run, i); });
    }
    next();
  };
  To(from).Start(worker::kPullTensors.path, WriteMessage(request), options,
                 Checked([](const Answer&) {}));
}

void StepTask::AnswerRun(const Call& call, const Bytes& request) {
  tensorflow::RunGraphRequest asked;
  int plan = 0;
  Status s = ReadMessage(request, &asked);
  if (s.ok() && (!absl::SimpleAtoi(asked.graph_handle(), &plan) || plan < 0 ||
                 plan >= static_cast<int>(plans_.size()))) {
    s = InvalidArgument("there is no graph ", asked.graph_handle());
  }
  if (!s.ok()) return call->Finish(AnswerOf(s));
  RunPart(plan, asked.step_id(), [call] {
    call->Finish(
        AnswerOf(OkStatus(), WriteMessage(tensorflow::RunGraphResponse())));
  });
}

void StepTask::AnswerReceive(const Call& call, const Bytes& request) {
  tensorflow::RecvTensorRequest asked;
  if (Status s = ReadMessage(request, &asked); !s.ok()) {
    return call->Finish(AnswerOf(s));
  }
  const Key key{asked.step_id(), asked.rendezvous_key()};
  Wait(key, [this, call, key](int64_t bytes) {
    if (bytes < static_cast<int64_t>(distributed::kLeastInParts)) {
      return call->Finish(AnswerOf(OkStatus(), Fill(bytes + kHead)));
    }
    // It waits for the second call.
    Give(key, bytes);
    Answer answer = AnswerOf(OkStatus());
    answer.metadata.emplace(kInParts, "1");
    call->Finish(std::move(answer));
  });
}

void StepTask::AnswerPull(const Call& call, const Bytes& request) {
  tensorflow::RecvTensorRequest asked;
  if (Status s = ReadMessage(request, &asked); !s.ok()) {
    return call->Finish(AnswerOf(s));
  }
  Wait({asked.step_id(), asked.rendezvous_key()},
       [call](int64_t bytes) { SendParts(call, bytes); });
}

void StepTask::AnswerPullMany(const Call& call, const Bytes& request) {
  PullTensorsRequest asked;
  if (Status s = ReadMessage(request, &asked); !s.ok()) {
    return call->Finish(AnswerOf(s));
  }
  const int count = asked.rendezvous_key_size();
  const auto together = std::make_shared<Together>(call, count);
  for (int i = 0; i < count; ++i) {
    const Key key{asked.step_id(), asked.rendezvous_key(i)};
    Wait(key, [this, together, key, i](int64_t bytes) {
      const bool in_parts =
          bytes >= static_cast<int64_t>(distributed::kLeastInParts);
      // It waits for a call of its own.
      if (in_parts) Give(key, bytes);
      together->Came(i, bytes, in_parts);
    });
  }
}

}  // namespace headrace::simulator
