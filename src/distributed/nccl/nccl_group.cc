#include "distributed/nccl/nccl_group.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/cancellation.h"

namespace headrace::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// Between looks at a GPU: a small sum takes some 30 us there.
constexpr std::chrono::microseconds kLookEvery{20};

// Of what a call gives this member.
Shape ResultShape(const CollectiveCall& call, int size) {
  Shape shape = call.shape;
  if (call.kind == CollectiveKind::kReduceScatter) {
    shape.set_dim(0, shape[0] / size);
  }
  return shape;
}

}  // namespace

StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Make(Options options,
                                                     const Patience& patience) {
  std::unique_ptr<NcclGroup> made(new NcclGroup(std::move(options)));
  const Options& o = made->options_;
  HR_RETURN_IF_ERROR(o.library->Use(o.gpu));
  HR_ASSIGN_OR_RETURN(made->stream_, o.library->NewStream());
  HR_RETURN_IF_ERROR(
      o.library->Join(o.size, o.id, o.rank, &made->communicator_));
  HR_RETURN_IF_ERROR(made->Await(
      [&] { return o.library->Ready(made->communicator_); }, patience));
  return made;
}

NcclGroup::~NcclGroup() {
  NcclLibrary& library = *options_.library;
  if (!library.Use(options_.gpu).ok()) return;
  if (communicator_ != nullptr) library.Abort(communicator_);
  for (const Room& room : {from_, to_}) {
    if (room.bytes > 0) library.Free(room.memory);
  }
  if (stream_ != nullptr) library.EndStream(stream_);
}

Status NcclGroup::Await(const std::function<StatusOr<bool>()>& done,
                        const Patience& patience) {
  const Clock::time_point since = Clock::now();
  while (true) {
    HR_ASSIGN_OR_RETURN(const bool is_done, done());
    if (is_done) return OkStatus();
    HR_RETURN_IF_ERROR(options_.over());
    HR_RETURN_IF_ERROR(CheckStop());
    if (Clock::now() - since > patience.time) {
      return patience.late(Clock::now() - since);
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

Status NcclGroup::Reserve(Room* room, size_t bytes) {
  if (room->bytes >= bytes) return OkStatus();
  if (room->bytes > 0) options_.library->Free(room->memory);
  *room = {};
  HR_RETURN_IF_ERROR(options_.library->Allocate(bytes, &room->memory));
  room->bytes = bytes;
  return OkStatus();
}

Status NcclGroup::Start(const CollectiveCall& call, int source, size_t in,
                        size_t out) {
  NcclLibrary& library = *options_.library;
  const size_t element = DTypeSize(call.dtype);
  const auto from = from_.memory, to = to_.memory;
  switch (call.kind) {
    case CollectiveKind::kReduce:
      return library.AllReduce(from, to, out / element, call.dtype,
                               call.merge_op, communicator_, stream_);
    case CollectiveKind::kReduceScatter:
      return library.ReduceScatter(from, to, out / element, call.dtype,
                                   call.merge_op, communicator_, stream_);
    case CollectiveKind::kGather:
      return library.AllGather(from, to, in, communicator_, stream_);
    case CollectiveKind::kBroadcast:
      return library.Broadcast(from, to, out, source, communicator_, stream_);
    case CollectiveKind::kAllToAll:
      break;
  }
  return Unimplemented("a collective of kind ", static_cast<int>(call.kind),
                       " by NCCL");
}

StatusOr<Tensor> NcclGroup::Run(const CollectiveCall& call, int source,
                                const Patience& patience) {
  NcclLibrary& library = *options_.library;
  HR_ASSIGN_OR_RETURN(
      Tensor result,
      Tensor::Allocate(call.dtype, ResultShape(call, options_.size)));
  const size_t out = result.bytes();
  if (out == 0) return result;
  const size_t in = call.input.has_buffer() ? call.input.bytes() : 0;
  HR_RETURN_IF_ERROR(library.Use(options_.gpu));
  // Also of who only receives: NCCL takes no null.
  HR_RETURN_IF_ERROR(Reserve(&from_, std::max(in, out)));
  HR_RETURN_IF_ERROR(Reserve(&to_, out));
  if (in > 0) {
    HR_RETURN_IF_ERROR(
        library.CopyTo(from_.memory, call.input.raw(), in, stream_));
  }
  HR_RETURN_IF_ERROR(Start(call, source, in, out));
  // A copy back would wait by itself, without a deadline, for what is before
  // it.
  HR_RETURN_IF_ERROR(Await(
      [&]() -> StatusOr<bool> {
        HR_ASSIGN_OR_RETURN(const bool begun, library.Ready(communicator_));
        if (!begun) return false;
        return library.Done(stream_);
      },
      patience));
  HR_RETURN_IF_ERROR(library.CopyFrom(result.raw(), to_.memory, out, stream_));
  HR_RETURN_IF_ERROR(Await([&] { return library.Done(stream_); }, patience));
  if (call.kind == CollectiveKind::kReduce ||
      call.kind == CollectiveKind::kReduceScatter) {
    FinishElements(call, options_.size, result.raw(), result.num_elements());
  }
  return result;
}

}  // namespace headrace::distributed
