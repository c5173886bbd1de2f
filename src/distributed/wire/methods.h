// The methods by which tasks of a cluster talk, under TensorFlow's paths, and
// how each is called. (The paths are not those that the packages of the .proto
// files of the services would give.)
#pragma once

#include <chrono>

namespace headrace::distributed {

// How a method is called where the caller does not say otherwise.
struct RemoteMethod {
  const char* path;
  // From its start to its answer.
  std::chrono::milliseconds deadline;
  // Whether it may be asked for again where the peer went away before it
  // answered: it changes nothing, or the same change twice is one.
  bool again = false;
  // Whether it tells who asks (handshake.h).
  bool introduces = false;
};

// For what a peer answers at once; with what it has to do first; for a step;
// and where it waits for other tasks, which may still be starting.
inline constexpr std::chrono::milliseconds kAtOnce{10'000}, kSoon{60'000},
    kStep{60'000}, kGathering{600'000};

namespace master {
#define HR_METHOD(name, ...)                                                \
  inline constexpr RemoteMethod k##name{"/tensorflow.MasterService/" #name, \
                                        __VA_ARGS__};
HR_METHOD(CreateSession, kGathering, false, true)
HR_METHOD(ExtendSession, kSoon)
HR_METHOD(PartialRunSetup, kSoon)
HR_METHOD(RunStep, kStep)
HR_METHOD(CloseSession, kSoon, true)
HR_METHOD(ListDevices, kGathering, true, true)
HR_METHOD(Reset, kSoon, true)
HR_METHOD(MakeCallable, kSoon)
HR_METHOD(RunCallable, kStep)
HR_METHOD(ReleaseCallable, kAtOnce, true)
#undef HR_METHOD
// Ours alone: steps that run one behind the other, in one call, and word that
// those which are not begun are wanted back (many_steps.h).
inline constexpr RemoteMethod kRunSteps{"/headrace.MasterService/RunSteps",
                                        kStep};
inline constexpr RemoteMethod kGiveBackSteps{
    "/headrace.MasterService/GiveBackSteps", kAtOnce, true};
}  // namespace master

namespace worker {
#define HR_METHOD(name, ...)                                                \
  inline constexpr RemoteMethod k##name{"/tensorflow.WorkerService/" #name, \
                                        __VA_ARGS__};
HR_METHOD(GetStatus, kAtOnce, true, true)
HR_METHOD(CreateWorkerSession, kSoon, false, true)
HR_METHOD(DeleteWorkerSession, kAtOnce, true)
HR_METHOD(RegisterGraph, kSoon)
HR_METHOD(DeregisterGraph, kAtOnce, true)
HR_METHOD(RunGraph, kStep)
HR_METHOD(CleanupGraph, kAtOnce, true)
HR_METHOD(CleanupAll, kSoon, true)
HR_METHOD(RecvTensor, kStep)
HR_METHOD(MarkRecvFinished, kAtOnce, true)
HR_METHOD(Logging, kAtOnce)
HR_METHOD(Tracing, kAtOnce)
HR_METHOD(RecvBuf, kStep)
HR_METHOD(CompleteGroup, kGathering, false, true)
HR_METHOD(CompleteInstance, kStep)
HR_METHOD(GetStepSequence, kAtOnce)
#undef HR_METHOD
// Ours alone: RecvTensor's answer in parts (tensor_codec.h).
inline constexpr RemoteMethod kPullTensor{"/headrace.WorkerService/PullTensor",
                                          kStep};
// Ours alone: all small tensors that a step of one task takes from another
// (gathered.h).
inline constexpr RemoteMethod kPullTensors{
    "/headrace.WorkerService/PullTensors", kStep};
// Ours alone: RunGraph, whose caller gets what the step sends it by the same
// call, as PullTensors' answer.
inline constexpr RemoteMethod kRunAndPull{"/headrace.WorkerService/RunAndPull",
                                          kStep};
// Of collectives (src/distributed/collective): members find each other, and are
// there for each other until one ends the group; both give each other one part;
// one takes parts.
inline constexpr RemoteMethod kJoinGroup{"/headrace.WorkerService/JoinGroup",
                                         kGathering, false, true};
inline constexpr RemoteMethod kWatchGroup{"/headrace.WorkerService/WatchGroup",
                                          kGathering};
inline constexpr RemoteMethod kEndGroup{"/headrace.WorkerService/EndGroup",
                                        kAtOnce};
// Of groups whose members change: a task tells another that it seeks one.
inline constexpr RemoteMethod kSeekGroup{"/headrace.WorkerService/SeekGroup",
                                         std::chrono::milliseconds(1'000),
                                         false, true};
inline constexpr RemoteMethod kSwapParts{"/headrace.WorkerService/SwapParts",
                                         kStep};
inline constexpr RemoteMethod kPullParts{"/headrace.WorkerService/PullParts",
                                         kStep};
}  // namespace worker

namespace eager_service {
#define HR_METHOD(name, ...)             \
  inline constexpr RemoteMethod k##name{ \
      "/tensorflow.eager.EagerService/" #name, __VA_ARGS__};
HR_METHOD(CreateContext, kGathering, false, true)
HR_METHOD(UpdateContext, kGathering)
HR_METHOD(Enqueue, kStep)
HR_METHOD(StreamingEnqueue, kStep)
HR_METHOD(WaitQueueDone, kStep)
HR_METHOD(RunComponentFunction, kStep)
HR_METHOD(KeepAlive, kAtOnce, true)
HR_METHOD(CloseContext, kAtOnce, true)
#undef HR_METHOD
// Ours alone: operations that run one behind the other, as RunSteps' steps do.
inline constexpr RemoteMethod kRunCalls{"/headrace.EagerService/RunCalls",
                                        kStep};
inline constexpr RemoteMethod kGiveBackCalls{
    "/headrace.EagerService/GiveBackCalls", kAtOnce, true};
}  // namespace eager_service

namespace coordination {
#define HR_METHOD(name, ...)             \
  inline constexpr RemoteMethod k##name{ \
      "/tensorflow.CoordinationService/" #name, __VA_ARGS__};
HR_METHOD(RegisterTask, kGathering, true, true)
// Its sender counts those that did not come.
HR_METHOD(Heartbeat, std::chrono::milliseconds(2'000))
HR_METHOD(PollForError, kGathering, true)
HR_METHOD(WaitForAllTasks, kGathering)
HR_METHOD(ShutdownTask, kSoon, true)
HR_METHOD(ResetTask, kAtOnce, true)
HR_METHOD(ReportErrorToTask, kAtOnce, true)
HR_METHOD(ReportErrorToService, kAtOnce, true)
HR_METHOD(GetTaskState, kAtOnce, true)
HR_METHOD(WatchJobState, kGathering, true)
HR_METHOD(GetAliveTasks, kSoon, true)
HR_METHOD(InsertKeyValue, kAtOnce)
HR_METHOD(GetKeyValue, kGathering, true)
HR_METHOD(TryGetKeyValue, kAtOnce, true)
HR_METHOD(GetKeyValueDir, kAtOnce, true)
HR_METHOD(IncrementKeyValue, kAtOnce)
HR_METHOD(DeleteKeyValue, kAtOnce, true)
HR_METHOD(Barrier, kGathering)
HR_METHOD(CancelBarrier, kAtOnce, true)
#undef HR_METHOD
}  // namespace coordination

}  // namespace headrace::distributed
