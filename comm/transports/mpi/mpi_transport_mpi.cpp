// Messages as non-blocking MPI point-to-point pairs.
#include <mpi.h>

#include "tandem/comm/backends/mpi/mpi_communicator.h"
#include "tandem/comm/transports/transport.h"
#include "tandem/core/error.h"

#include <climits>
#include <utility>

namespace tandem::comm::detail {

namespace {

class MpiTransfer final : public Transfer {
 public:
  MpiTransfer(MPI_Request request, bool is_receive) : request_(request), is_receive_(is_receive) {}
  ~MpiTransfer() override {
    if (request_ == MPI_REQUEST_NULL) return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    if (is_receive_) MPI_Cancel(&request_);
    MPI_Request_free(&request_);
  }
  MpiTransfer(const MpiTransfer&) = delete;
  MpiTransfer& operator=(const MpiTransfer&) = delete;

  bool done() override {
    int complete = 0;
    TANDEM_CHECK_MPI(MPI_Test(&request_, &complete, MPI_STATUS_IGNORE));
    return complete != 0;
  }

 private:
  MPI_Request request_;
  bool is_receive_;
};

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(Communicator communicator) : communicator_(std::move(communicator)) {}

  std::unique_ptr<Transfer> send(int to, int tag, const void* data, std::int64_t bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    TANDEM_CHECK_MPI(MPI_Isend(data, checked(bytes), MPI_BYTE, to, tag, communicator_.get(), &request));
    return std::make_unique<MpiTransfer>(request, false);
  }
  std::unique_ptr<Transfer> receive(int from, int tag, void* data, std::int64_t bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    TANDEM_CHECK_MPI(MPI_Irecv(data, checked(bytes), MPI_BYTE, from, tag, communicator_.get(), &request));
    return std::make_unique<MpiTransfer>(request, true);
  }
  std::string thread_obstacle() const override { return mpi_thread_obstacle(); }
  std::unique_ptr<Transport> subgroup(std::span<const int> members) override {
    return std::make_unique<MpiTransport>(communicator_of(communicator_.get(), members));
  }

 private:
  static int checked(std::int64_t bytes) {
    require(bytes >= 0 && bytes <= INT_MAX, "a message of {} bytes is more than MPI takes", bytes);
    return static_cast<int>(bytes);
  }

  Communicator communicator_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport() { return std::make_unique<MpiTransport>(duplicate(MPI_COMM_WORLD)); }

std::unique_ptr<Transport> make_world_transport() {
  return std::make_unique<MpiTransport>(Communicator(MPI_COMM_WORLD, MPI_COMM_WORLD));  // "empty", so not freed
}

}  // namespace tandem::comm::detail
