// A request on its way through the handlers of a server, each of which does something of its own
// and calls the next: frames of many sizes, registers saved or not, landing pads, callbacks out of
// the standard library's templates and out of libstdc++.so.
//
// How many frames a handler makes is the compiler's matter, so each is tried before they are put
// together. All are instantiated several times: also a deep stack hardly has an address twice.
#include "descend.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <ostream>
#include <streambuf>
#include <string>
#include <unwind.h>
#include <utility>
#include <vector>

namespace
{

struct Request;

struct Handler {
    virtual long handle(Request &request) const = 0;
    virtual ~Handler() = default;
};

using Handlers = std::vector<const Handler *>;

struct Request {
    const Handlers &handlers;
    void (*then)(const void *arg);
    const void *arg;
    size_t done = 0;
};

// No frame of its own. What it returns is used by all, so that no call is a jump.
[[gnu::always_inline]] inline long pass(Request &request)
{
    if (request.done < request.handlers.size())
        return request.handlers[request.done++]->handle(request);
    request.then(request.arg);
    return 0;
}

// Handlers ----------------------------------------------------------------------------------------

// A destructor runs when it is left in any way.
template <int N> struct Named : Handler {
    long handle(Request &request) const override
    {
        std::string name(N + 20, 'n');
        return pass(request) + static_cast<long>(name.size());
    }
};

// std::function and a lambda.
template <int N> struct Called : Handler {
    std::function<long(Request &)> callback = [](Request &request) { return pass(request) + N; };
    long handle(Request &request) const override
    {
        return callback(request) + N;
    }
};

// A big frame.
template <int N> struct Buffered : Handler {
    long handle(Request &request) const override
    {
        std::array<char, N * 168> text;
        char *end = std::to_chars(text.begin(), text.end(), request.done).ptr;
        return std::accumulate(text.begin(), end, pass(request));
    }
};

// All registers in use across the call.
template <int N> struct Busy : Handler {
    long handle(Request &request) const override
    {
        size_t a = request.done, b = a * N, c = b ^ a, d = c * b, e = d ^ c, f = e * d;
        return pass(request) + static_cast<long>(((a ^ b) * c + d) ^ (e + f));
    }
};

// A comparison, in the midst of std::sort.
template <int N> struct Sorted : Handler {
    long handle(Request &request) const override
    {
        std::vector<int> numbers(N + 30);
        std::iota(numbers.rbegin(), numbers.rend(), 0);
        long sum = 0;
        bool passed = false;
        std::sort(numbers.begin(), numbers.end(), [&](int a, int b) {
            if (!std::exchange(passed, true))
                sum = pass(request);
            return a < b;
        });
        return sum + numbers[N];
    }
};

// A stream buffer of the program's, called by libstdc++.so.
template <int N> struct Flushed : Handler {
    struct Sink : std::streambuf {
        Request &request;
        long sum = 0;
        explicit Sink(Request &r) : request(r)
        {
        }
        int sync() override
        {
            sum = pass(request) + N;
            return 0;
        }
    };
    long handle(Request &request) const override
    {
        Sink sink(request);
        std::ostream(&sink).flush();
        return sink.sum;
    }
};

// An exception is looked at and goes on.
template <int N> struct Guarded : Handler {
    long handle(Request &request) const override
    {
        try {
            return pass(request) + N;
        } catch (...) {
            request.done -= N;
            throw;
        }
    }
};

// The last owner lets go: a destructor calls.
template <int N> struct Released : Handler {
    long handle(Request &request) const override
    {
        long sum = 0;
        {
            std::shared_ptr<Request> owner(&request, [&](Request *r) { sum = pass(*r) + N; });
        }
        return sum;
    }
};

// Putting them together ---------------------------------------------------------------------------

template <int N> void add(Handlers &all)
{
    static const Named<N> named;
    static const Called<N> called;
    static const Buffered<N> buffered;
    static const Busy<N> busy;
    static const Sorted<N> sorted;
    static const Flushed<N> flushed;
    static const Guarded<N> guarded;
    static const Released<N> released;
    all.insert(all.end(),
               {&named, &called, &buffered, &busy, &sorted, &flushed, &guarded, &released});
}

template <int... N> Handlers instantiate(std::integer_sequence<int, N...>)
{
    Handlers all;
    (add<N + 2>(all), ...);
    return all;
}

void count(const void *frames)
{
    auto one_more = [](_Unwind_Context *, void *n) {
        ++*static_cast<int *>(n);
        return _URC_NO_REASON;
    };
    _Unwind_Backtrace(one_more, const_cast<void *>(frames));
}

int frames_of(const Handlers &handlers)
{
    int without = 0, with = 0;
    const Handlers none;
    Request direct{none, count, &without}, handled{handlers, count, &with};
    pass(direct);
    pass(handled);
    return with - without;
}

Handlers make(int frames)
{
    const Handlers all = instantiate(std::make_integer_sequence<int, 8>());
    Handlers some;
    int left = frames;
    // Each round uses one at least: some handlers are one frame.
    for (int round = 0; round < frames && left > 0; round++) {
        for (const Handler *handler : all) {
            int n = frames_of({handler});
            if (n <= left) {
                some.push_back(handler);
                left -= n;
            }
        }
    }
    if (frames_of(some) != frames)
        std::abort();
    return some;
}

} // namespace

void descend(int depth, void (*then)(const void *arg), const void *arg)
{
    Handlers handlers = make(depth - 1);
    Request request{handlers, then, arg};
    pass(request);
}
