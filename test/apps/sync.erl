%% Processes in a ring, a port, and a socket, on two schedulers that pass work to each other.
-mode(compile).

relay(0, Next) -> Next ! done;
relay(N, Next) -> receive X -> Next ! X + 1 end, relay(N - 1, Next).

ring(Last, Rounds, 0) -> relay(Rounds, Last);
ring(Last, Rounds, Size) -> ring(spawn(fun() -> relay(Rounds, Last) end), Rounds, Size - 1).

turns(_, 0, X) -> X;
turns(First, N, X) -> First ! X, receive Y -> turns(First, N - 1, Y) end.

echo(Listener) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    {ok, Data} = gen_tcp:recv(Socket, 5),
    ok = gen_tcp:send(Socket, Data).

main(_) ->
    Main = self(),
    First = spawn(fun() -> ring(Main, 200, 50) end),
    io:format("~p~n", [turns(First, 200, 0)]),
    {ok, Listener} = gen_tcp:listen(0, [binary, {active, false}]),
    {ok, Port} = inet:port(Listener),
    spawn(fun() -> echo(Listener) end),
    {ok, Socket} = gen_tcp:connect("127.0.0.1", Port, [binary, {active, false}]),
    ok = gen_tcp:send(Socket, "hello"),
    io:format("~p ~s", [gen_tcp:recv(Socket, 5), os:cmd("echo port")]).
