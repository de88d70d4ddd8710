% Functions of Erlang's own, and one whose time is spent in code in C that it calls.
-module(shop).
-export([main/0]).

serve(0, Sum) -> Sum;
serve(Price, Sum) -> serve(Price - 1, (Sum + Price * Price) rem 1000003).

pack(0, _, Size) -> Size;
pack(Parcels, Goods, Size) -> pack(Parcels - 1, Goods, Size + byte_size(term_to_binary(Goods))).

% CPU time of the process in milliseconds.
cpu() -> element(1, erlang:statistics(runtime)).

% Calls a function until this CPU time in milliseconds.
until(End, Call) -> until(End, Call, cpu()).
until(End, _, Now) when Now >= End -> ok;
until(End, Call, _) -> Call(), until(End, Call, cpu()).

day(Price) -> until(cpu() + 1000, fun() -> serve(Price, 0) end).

main() ->
    {Speed, _} = string:to_float(os:getenv("PMC_TEST_LOOP_SPEED", "1") ++ ".0"),
    day(round(10000 / Speed)),
    Goods = lists:seq(100000, 110000),
    until(cpu() + 500, fun() -> pack(10, Goods, 0) end),
    halt().
