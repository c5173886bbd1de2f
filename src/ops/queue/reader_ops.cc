// What is asked of readers.
#include "op/op.h"
#include "op/op_like.h"
#include "op/reach.h"
#include "op/waiting.h"
#include "ops/queue/reader.h"

namespace headrace {
namespace {

StatusOr<std::shared_ptr<Reader>> ReaderOf(const KernelContext& c) {
  return ResourceAs<Reader>(c.input(0), c.services().resources);
}

StatusOr<std::shared_ptr<TupleQueue>> WorkQueueOf(const KernelContext& c) {
  return ResourceAs<TupleQueue>(c.input(1), c.services().resources);
}

Status Read(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto reader, ReaderOf(c));
  HR_ASSIGN_OR_RETURN(auto queue, WorkQueueOf(c));
  HR_ASSIGN_OR_RETURN(Reader::Record record, reader->Read(*queue));
  *c.out<std::string>(0) = std::move(record.key);
  *c.out<std::string>(1) = std::move(record.value);
  return OkStatus();
}

HR_OP(ReaderReadV2)
    .Traits({kReadsFiles, kMayWait})
    .Input("reader_handle: resource")
    .Input("queue_handle: resource")
    .Output("key: string")
    .Output("value: string")
    .Doc("The next record of a reader, and its name.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(Compute<Read>);

Status ReadUpTo(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto reader, ReaderOf(c));
  HR_ASSIGN_OR_RETURN(auto queue, WorkQueueOf(c));
  const int64_t n = c.input(2).scalar<int64_t>();
  if (n < 1) {
    return InvalidArgument(
        "ReaderReadUpToV2: num_records must be positive, "
        "got ",
        n);
  }
  HR_ASSIGN_OR_RETURN(auto found, reader->ReadUpTo(n, *queue));
  const Shape shape{static_cast<int64_t>(found.size())};
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  HR_RETURN_IF_ERROR(c.Allocate(1, shape));
  for (size_t i = 0; i < found.size(); ++i) {
    c.out<std::string>(0)[i] = std::move(found[i].key);
    c.out<std::string>(1)[i] = std::move(found[i].value);
  }
  return OkStatus();
}

Status VectorsRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 0));
  c.set_output(0, Shape{-1});
  c.set_output(1, Shape{-1});
  return OkStatus();
}

HR_OP(ReaderReadUpToV2)
    .Traits({kReadsFiles, kMayWait})
    .Input("reader_handle: resource")
    .Input("queue_handle: resource")
    .Input("num_records: int64")
    .Output("keys: string")
    .Output("values: string")
    .Doc("At most so many records of a reader, and their names.")
    .Stateful()
    .Shape(VectorsRule)
    .Cpu(ComputeOwn<ReadUpTo>);

template <int64_t (Reader::*count)() const>
Status Count(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto reader, ReaderOf(c));
  *c.out<int64_t>(0) = (reader.get()->*count)();
  return OkStatus();
}

HR_OP(ReaderNumRecordsProducedV2)
    .Input("reader_handle: resource")
    .Output("records_produced: int64")
    .Doc("How many records a reader has given.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(Compute<Count<&Reader::records_produced>>);

HR_OP(ReaderNumWorkUnitsCompletedV2)
    .Input("reader_handle: resource")
    .Output("units_completed: int64")
    .Doc("How many files a reader is through with.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(Compute<Count<&Reader::units_completed>>);

Status Serialize(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto reader, ReaderOf(c));
  HR_ASSIGN_OR_RETURN(*c.out<std::string>(0), reader->Serialize());
  return OkStatus();
}

HR_OP(ReaderSerializeStateV2)
    .Input("reader_handle: resource")
    .Output("state: string")
    .Doc("Where a reader is, as bytes.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(Compute<Serialize>);

Status Restore(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto reader, ReaderOf(c));
  if (c.input(1).num_elements() != 1) {
    return InvalidArgument("ReaderRestoreStateV2: state is a scalar");
  }
  return reader->Restore(c.input(1).scalar<std::string>());
}

HR_OP(ReaderRestoreStateV2)
    .Input("reader_handle: resource")
    .Input("state: string")
    .Doc("Brings a reader to where another one was.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Restore>);

Status Reset(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto reader, ReaderOf(c));
  reader->Reset();
  return OkStatus();
}

HR_OP(ReaderResetV2)
    .Input("reader_handle: resource")
    .Doc("Makes a reader as if it were new.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Reset>);

[[maybe_unused]] const bool kReaderOpsByReference[] = {
    RegisterLike("ReaderRead", "ReaderReadV2", ByReference),
    RegisterLike("ReaderReadUpTo", "ReaderReadUpToV2", ByReference),
    RegisterLike("ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2",
                 ByReference),
    RegisterLike("ReaderNumWorkUnitsCompleted", "ReaderNumWorkUnitsCompletedV2",
                 ByReference),
    RegisterLike("ReaderSerializeState", "ReaderSerializeStateV2", ByReference),
    RegisterLike("ReaderRestoreState", "ReaderRestoreStateV2", ByReference),
    RegisterLike("ReaderReset", "ReaderResetV2", ByReference),
};

}  // namespace
}  // namespace headrace
