// Messages of methods as the bytes that gRPC carries.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <climits>

#include "base/guard.h"
#include "base/status.h"
#include "rpc/server.h"
#include "serving/model/call.h"

namespace headrace::serving {

// Internal, as gRPC's own servers say, where the bytes are no such message.
template <typename Message>
Status ParseMessage(grpc::ByteBuffer* bytes, Message* message) {
  grpc::ProtoBufferReader reader(bytes);
  if (reader.status().ok()) {
    google::protobuf::io::CodedInputStream decoder(&reader);
    decoder.SetTotalBytesLimit(INT_MAX);
    if (message->ParseFromCodedStream(&decoder) &&
        decoder.ConsumedEntireMessage()) {
      return OkStatus();
    }
  }
  return Internal("the request is no ", message->GetTypeName());
}

template <typename Message>
StatusOr<grpc::ByteBuffer> MessageBytes(const Message& message) {
  grpc::ByteBuffer bytes;
  bool owned = false;
  const grpc::Status s =
      grpc::GenericSerialize<grpc::ProtoBufferWriter, Message>(message, &bytes,
                                                               &owned);
  if (!s.ok()) {
    return Internal("a response of ", message.ByteSizeLong(),
                    " bytes is too long to be sent");
  }
  return bytes;
}

// Called once, in any thread; the bytes are not looked at where the status is
// an error.
using RpcDone = std::function<void(const Status&, grpc::ByteBuffer)>;

// A method of one message in and one out: f(CallPtr, grpc::ByteBuffer* request,
// RpcDone).
template <typename F>
RpcMethod BytesMethod(F f) {
  RpcMethod method;
  method.serve = [f](std::shared_ptr<RpcCall> rpc, grpc::ByteBuffer* request) {
    const auto call = std::make_shared<Call>(rpc->deadline());
    rpc->OnCancel([call] { call->stop().Cancel(); });
    f(call, request, [rpc](const Status& s, grpc::ByteBuffer response) {
      rpc->Finish({s, std::move(response)});
    });
  };
  return method;
}

// A method of messages: f(CallPtr, const Request&, function of
// StatusOr<Response>).
template <typename Request, typename Response, typename F>
RpcMethod UnaryMethod(F f) {
  return BytesMethod([f](CallPtr call, grpc::ByteBuffer* bytes, RpcDone done) {
    Request request;
    const Status s =
        Guarded("a request", [&] { return ParseMessage(bytes, &request); });
    if (!s.ok()) return done(s, {});
    bytes->Clear();
    f(std::move(call), request,
      [done = std::move(done)](StatusOr<Response> response) {
        if (!response.ok()) return done(response.status(), {});
        StatusOr<grpc::ByteBuffer> reply;
        const Status told = Guarded("a response", [&] {
          reply = MessageBytes(*response);
          return reply.status();
        });
        if (!told.ok()) return done(told, {});
        done(OkStatus(), *std::move(reply));
      });
  });
}

// A method that answers at once: f(const Request&, Response*).
template <typename Request, typename Response, typename F>
RpcMethod PlainMethod(F f) {
  return UnaryMethod<Request, Response>(
      [f](CallPtr, const Request& request,
          const std::function<void(StatusOr<Response>)>& done) {
        Response response;
        const Status s =
            Guarded("a request", [&] { return f(request, &response); });
        if (!s.ok()) return done(s);
        done(std::move(response));
      });
}

}  // namespace headrace::serving
