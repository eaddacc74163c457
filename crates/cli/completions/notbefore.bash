_notbefore() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="notbefore"
                ;;
            notbefore,agent)
                cmd="notbefore__subcmd__agent"
                ;;
            notbefore,approve)
                cmd="notbefore__subcmd__approve"
                ;;
            notbefore,audit)
                cmd="notbefore__subcmd__audit"
                ;;
            notbefore,check)
                cmd="notbefore__subcmd__check"
                ;;
            notbefore,clock)
                cmd="notbefore__subcmd__clock"
                ;;
            notbefore,cluster)
                cmd="notbefore__subcmd__cluster"
                ;;
            notbefore,completions)
                cmd="notbefore__subcmd__completions"
                ;;
            notbefore,console)
                cmd="notbefore__subcmd__console"
                ;;
            notbefore,event)
                cmd="notbefore__subcmd__event"
                ;;
            notbefore,export)
                cmd="notbefore__subcmd__export"
                ;;
            notbefore,fault)
                cmd="notbefore__subcmd__fault"
                ;;
            notbefore,fleet)
                cmd="notbefore__subcmd__fleet"
                ;;
            notbefore,get)
                cmd="notbefore__subcmd__get"
                ;;
            notbefore,healthy)
                cmd="notbefore__subcmd__healthy"
                ;;
            notbefore,help)
                cmd="notbefore__subcmd__help"
                ;;
            notbefore,host)
                cmd="notbefore__subcmd__host"
                ;;
            notbefore,import)
                cmd="notbefore__subcmd__import"
                ;;
            notbefore,openapi)
                cmd="notbefore__subcmd__openapi"
                ;;
            notbefore,operation)
                cmd="notbefore__subcmd__operation"
                ;;
            notbefore,rehearse)
                cmd="notbefore__subcmd__rehearse"
                ;;
            notbefore,serve)
                cmd="notbefore__subcmd__serve"
                ;;
            notbefore,status)
                cmd="notbefore__subcmd__status"
                ;;
            notbefore,token)
                cmd="notbefore__subcmd__token"
                ;;
            notbefore,vm)
                cmd="notbefore__subcmd__vm"
                ;;
            notbefore__subcmd__agent,check)
                cmd="notbefore__subcmd__agent__subcmd__check"
                ;;
            notbefore__subcmd__agent,help)
                cmd="notbefore__subcmd__agent__subcmd__help"
                ;;
            notbefore__subcmd__agent,history)
                cmd="notbefore__subcmd__agent__subcmd__history"
                ;;
            notbefore__subcmd__agent,reload)
                cmd="notbefore__subcmd__agent__subcmd__reload"
                ;;
            notbefore__subcmd__agent,retry)
                cmd="notbefore__subcmd__agent__subcmd__retry"
                ;;
            notbefore__subcmd__agent,run)
                cmd="notbefore__subcmd__agent__subcmd__run"
                ;;
            notbefore__subcmd__agent,sample)
                cmd="notbefore__subcmd__agent__subcmd__sample"
                ;;
            notbefore__subcmd__agent,status)
                cmd="notbefore__subcmd__agent__subcmd__status"
                ;;
            notbefore__subcmd__agent__subcmd__help,check)
                cmd="notbefore__subcmd__agent__subcmd__help__subcmd__check"
                ;;
            notbefore__subcmd__agent__subcmd__help,help)
                cmd="notbefore__subcmd__agent__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__agent__subcmd__help,history)
                cmd="notbefore__subcmd__agent__subcmd__help__subcmd__history"
                ;;
            notbefore__subcmd__agent__subcmd__help,reload)
                cmd="notbefore__subcmd__agent__subcmd__help__subcmd__reload"
                ;;
            notbefore__subcmd__agent__subcmd__help,retry)
                cmd="notbefore__subcmd__agent__subcmd__help__subcmd__retry"
                ;;
            notbefore__subcmd__agent__subcmd__help,run)
                cmd="notbefore__subcmd__agent__subcmd__help__subcmd__run"
                ;;
            notbefore__subcmd__agent__subcmd__help,sample)
                cmd="notbefore__subcmd__agent__subcmd__help__subcmd__sample"
                ;;
            notbefore__subcmd__agent__subcmd__help,status)
                cmd="notbefore__subcmd__agent__subcmd__help__subcmd__status"
                ;;
            notbefore__subcmd__clock,accept)
                cmd="notbefore__subcmd__clock__subcmd__accept"
                ;;
            notbefore__subcmd__clock,help)
                cmd="notbefore__subcmd__clock__subcmd__help"
                ;;
            notbefore__subcmd__clock,show)
                cmd="notbefore__subcmd__clock__subcmd__show"
                ;;
            notbefore__subcmd__clock__subcmd__help,accept)
                cmd="notbefore__subcmd__clock__subcmd__help__subcmd__accept"
                ;;
            notbefore__subcmd__clock__subcmd__help,help)
                cmd="notbefore__subcmd__clock__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__clock__subcmd__help,show)
                cmd="notbefore__subcmd__clock__subcmd__help__subcmd__show"
                ;;
            notbefore__subcmd__cluster,forget)
                cmd="notbefore__subcmd__cluster__subcmd__forget"
                ;;
            notbefore__subcmd__cluster,hand-over)
                cmd="notbefore__subcmd__cluster__subcmd__hand__subcmd__over"
                ;;
            notbefore__subcmd__cluster,help)
                cmd="notbefore__subcmd__cluster__subcmd__help"
                ;;
            notbefore__subcmd__cluster,status)
                cmd="notbefore__subcmd__cluster__subcmd__status"
                ;;
            notbefore__subcmd__cluster,upgrade)
                cmd="notbefore__subcmd__cluster__subcmd__upgrade"
                ;;
            notbefore__subcmd__cluster__subcmd__help,forget)
                cmd="notbefore__subcmd__cluster__subcmd__help__subcmd__forget"
                ;;
            notbefore__subcmd__cluster__subcmd__help,hand-over)
                cmd="notbefore__subcmd__cluster__subcmd__help__subcmd__hand__subcmd__over"
                ;;
            notbefore__subcmd__cluster__subcmd__help,help)
                cmd="notbefore__subcmd__cluster__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__cluster__subcmd__help,status)
                cmd="notbefore__subcmd__cluster__subcmd__help__subcmd__status"
                ;;
            notbefore__subcmd__cluster__subcmd__help,upgrade)
                cmd="notbefore__subcmd__cluster__subcmd__help__subcmd__upgrade"
                ;;
            notbefore__subcmd__cluster__subcmd__help__subcmd__upgrade,finish)
                cmd="notbefore__subcmd__cluster__subcmd__help__subcmd__upgrade__subcmd__finish"
                ;;
            notbefore__subcmd__cluster__subcmd__upgrade,finish)
                cmd="notbefore__subcmd__cluster__subcmd__upgrade__subcmd__finish"
                ;;
            notbefore__subcmd__cluster__subcmd__upgrade,help)
                cmd="notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help"
                ;;
            notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help,finish)
                cmd="notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help__subcmd__finish"
                ;;
            notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help,help)
                cmd="notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__event,approve)
                cmd="notbefore__subcmd__event__subcmd__approve"
                ;;
            notbefore__subcmd__event,cancel)
                cmd="notbefore__subcmd__event__subcmd__cancel"
                ;;
            notbefore__subcmd__event,complete)
                cmd="notbefore__subcmd__event__subcmd__complete"
                ;;
            notbefore__subcmd__event,help)
                cmd="notbefore__subcmd__event__subcmd__help"
                ;;
            notbefore__subcmd__event,history)
                cmd="notbefore__subcmd__event__subcmd__history"
                ;;
            notbefore__subcmd__event,list)
                cmd="notbefore__subcmd__event__subcmd__list"
                ;;
            notbefore__subcmd__event,retry)
                cmd="notbefore__subcmd__event__subcmd__retry"
                ;;
            notbefore__subcmd__event,schedule)
                cmd="notbefore__subcmd__event__subcmd__schedule"
                ;;
            notbefore__subcmd__event,show)
                cmd="notbefore__subcmd__event__subcmd__show"
                ;;
            notbefore__subcmd__event,start)
                cmd="notbefore__subcmd__event__subcmd__start"
                ;;
            notbefore__subcmd__event,wait)
                cmd="notbefore__subcmd__event__subcmd__wait"
                ;;
            notbefore__subcmd__event,watch)
                cmd="notbefore__subcmd__event__subcmd__watch"
                ;;
            notbefore__subcmd__event__subcmd__help,approve)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__approve"
                ;;
            notbefore__subcmd__event__subcmd__help,cancel)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__cancel"
                ;;
            notbefore__subcmd__event__subcmd__help,complete)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__complete"
                ;;
            notbefore__subcmd__event__subcmd__help,help)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__event__subcmd__help,history)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__history"
                ;;
            notbefore__subcmd__event__subcmd__help,list)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__list"
                ;;
            notbefore__subcmd__event__subcmd__help,retry)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__retry"
                ;;
            notbefore__subcmd__event__subcmd__help,schedule)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__schedule"
                ;;
            notbefore__subcmd__event__subcmd__help,show)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__show"
                ;;
            notbefore__subcmd__event__subcmd__help,start)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__start"
                ;;
            notbefore__subcmd__event__subcmd__help,wait)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__wait"
                ;;
            notbefore__subcmd__event__subcmd__help,watch)
                cmd="notbefore__subcmd__event__subcmd__help__subcmd__watch"
                ;;
            notbefore__subcmd__fault,add)
                cmd="notbefore__subcmd__fault__subcmd__add"
                ;;
            notbefore__subcmd__fault,clear)
                cmd="notbefore__subcmd__fault__subcmd__clear"
                ;;
            notbefore__subcmd__fault,help)
                cmd="notbefore__subcmd__fault__subcmd__help"
                ;;
            notbefore__subcmd__fault,list)
                cmd="notbefore__subcmd__fault__subcmd__list"
                ;;
            notbefore__subcmd__fault__subcmd__help,add)
                cmd="notbefore__subcmd__fault__subcmd__help__subcmd__add"
                ;;
            notbefore__subcmd__fault__subcmd__help,clear)
                cmd="notbefore__subcmd__fault__subcmd__help__subcmd__clear"
                ;;
            notbefore__subcmd__fault__subcmd__help,help)
                cmd="notbefore__subcmd__fault__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__fault__subcmd__help,list)
                cmd="notbefore__subcmd__fault__subcmd__help__subcmd__list"
                ;;
            notbefore__subcmd__fleet,apply)
                cmd="notbefore__subcmd__fleet__subcmd__apply"
                ;;
            notbefore__subcmd__fleet,diff)
                cmd="notbefore__subcmd__fleet__subcmd__diff"
                ;;
            notbefore__subcmd__fleet,help)
                cmd="notbefore__subcmd__fleet__subcmd__help"
                ;;
            notbefore__subcmd__fleet,show)
                cmd="notbefore__subcmd__fleet__subcmd__show"
                ;;
            notbefore__subcmd__fleet__subcmd__help,apply)
                cmd="notbefore__subcmd__fleet__subcmd__help__subcmd__apply"
                ;;
            notbefore__subcmd__fleet__subcmd__help,diff)
                cmd="notbefore__subcmd__fleet__subcmd__help__subcmd__diff"
                ;;
            notbefore__subcmd__fleet__subcmd__help,help)
                cmd="notbefore__subcmd__fleet__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__fleet__subcmd__help,show)
                cmd="notbefore__subcmd__fleet__subcmd__help__subcmd__show"
                ;;
            notbefore__subcmd__help,agent)
                cmd="notbefore__subcmd__help__subcmd__agent"
                ;;
            notbefore__subcmd__help,approve)
                cmd="notbefore__subcmd__help__subcmd__approve"
                ;;
            notbefore__subcmd__help,audit)
                cmd="notbefore__subcmd__help__subcmd__audit"
                ;;
            notbefore__subcmd__help,check)
                cmd="notbefore__subcmd__help__subcmd__check"
                ;;
            notbefore__subcmd__help,clock)
                cmd="notbefore__subcmd__help__subcmd__clock"
                ;;
            notbefore__subcmd__help,cluster)
                cmd="notbefore__subcmd__help__subcmd__cluster"
                ;;
            notbefore__subcmd__help,completions)
                cmd="notbefore__subcmd__help__subcmd__completions"
                ;;
            notbefore__subcmd__help,console)
                cmd="notbefore__subcmd__help__subcmd__console"
                ;;
            notbefore__subcmd__help,event)
                cmd="notbefore__subcmd__help__subcmd__event"
                ;;
            notbefore__subcmd__help,export)
                cmd="notbefore__subcmd__help__subcmd__export"
                ;;
            notbefore__subcmd__help,fault)
                cmd="notbefore__subcmd__help__subcmd__fault"
                ;;
            notbefore__subcmd__help,fleet)
                cmd="notbefore__subcmd__help__subcmd__fleet"
                ;;
            notbefore__subcmd__help,get)
                cmd="notbefore__subcmd__help__subcmd__get"
                ;;
            notbefore__subcmd__help,healthy)
                cmd="notbefore__subcmd__help__subcmd__healthy"
                ;;
            notbefore__subcmd__help,help)
                cmd="notbefore__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__help,host)
                cmd="notbefore__subcmd__help__subcmd__host"
                ;;
            notbefore__subcmd__help,import)
                cmd="notbefore__subcmd__help__subcmd__import"
                ;;
            notbefore__subcmd__help,openapi)
                cmd="notbefore__subcmd__help__subcmd__openapi"
                ;;
            notbefore__subcmd__help,operation)
                cmd="notbefore__subcmd__help__subcmd__operation"
                ;;
            notbefore__subcmd__help,rehearse)
                cmd="notbefore__subcmd__help__subcmd__rehearse"
                ;;
            notbefore__subcmd__help,serve)
                cmd="notbefore__subcmd__help__subcmd__serve"
                ;;
            notbefore__subcmd__help,status)
                cmd="notbefore__subcmd__help__subcmd__status"
                ;;
            notbefore__subcmd__help,token)
                cmd="notbefore__subcmd__help__subcmd__token"
                ;;
            notbefore__subcmd__help,vm)
                cmd="notbefore__subcmd__help__subcmd__vm"
                ;;
            notbefore__subcmd__help__subcmd__agent,check)
                cmd="notbefore__subcmd__help__subcmd__agent__subcmd__check"
                ;;
            notbefore__subcmd__help__subcmd__agent,history)
                cmd="notbefore__subcmd__help__subcmd__agent__subcmd__history"
                ;;
            notbefore__subcmd__help__subcmd__agent,reload)
                cmd="notbefore__subcmd__help__subcmd__agent__subcmd__reload"
                ;;
            notbefore__subcmd__help__subcmd__agent,retry)
                cmd="notbefore__subcmd__help__subcmd__agent__subcmd__retry"
                ;;
            notbefore__subcmd__help__subcmd__agent,run)
                cmd="notbefore__subcmd__help__subcmd__agent__subcmd__run"
                ;;
            notbefore__subcmd__help__subcmd__agent,sample)
                cmd="notbefore__subcmd__help__subcmd__agent__subcmd__sample"
                ;;
            notbefore__subcmd__help__subcmd__agent,status)
                cmd="notbefore__subcmd__help__subcmd__agent__subcmd__status"
                ;;
            notbefore__subcmd__help__subcmd__clock,accept)
                cmd="notbefore__subcmd__help__subcmd__clock__subcmd__accept"
                ;;
            notbefore__subcmd__help__subcmd__clock,show)
                cmd="notbefore__subcmd__help__subcmd__clock__subcmd__show"
                ;;
            notbefore__subcmd__help__subcmd__cluster,forget)
                cmd="notbefore__subcmd__help__subcmd__cluster__subcmd__forget"
                ;;
            notbefore__subcmd__help__subcmd__cluster,hand-over)
                cmd="notbefore__subcmd__help__subcmd__cluster__subcmd__hand__subcmd__over"
                ;;
            notbefore__subcmd__help__subcmd__cluster,status)
                cmd="notbefore__subcmd__help__subcmd__cluster__subcmd__status"
                ;;
            notbefore__subcmd__help__subcmd__cluster,upgrade)
                cmd="notbefore__subcmd__help__subcmd__cluster__subcmd__upgrade"
                ;;
            notbefore__subcmd__help__subcmd__cluster__subcmd__upgrade,finish)
                cmd="notbefore__subcmd__help__subcmd__cluster__subcmd__upgrade__subcmd__finish"
                ;;
            notbefore__subcmd__help__subcmd__event,approve)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__approve"
                ;;
            notbefore__subcmd__help__subcmd__event,cancel)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__cancel"
                ;;
            notbefore__subcmd__help__subcmd__event,complete)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__complete"
                ;;
            notbefore__subcmd__help__subcmd__event,history)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__history"
                ;;
            notbefore__subcmd__help__subcmd__event,list)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__list"
                ;;
            notbefore__subcmd__help__subcmd__event,retry)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__retry"
                ;;
            notbefore__subcmd__help__subcmd__event,schedule)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__schedule"
                ;;
            notbefore__subcmd__help__subcmd__event,show)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__show"
                ;;
            notbefore__subcmd__help__subcmd__event,start)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__start"
                ;;
            notbefore__subcmd__help__subcmd__event,wait)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__wait"
                ;;
            notbefore__subcmd__help__subcmd__event,watch)
                cmd="notbefore__subcmd__help__subcmd__event__subcmd__watch"
                ;;
            notbefore__subcmd__help__subcmd__fault,add)
                cmd="notbefore__subcmd__help__subcmd__fault__subcmd__add"
                ;;
            notbefore__subcmd__help__subcmd__fault,clear)
                cmd="notbefore__subcmd__help__subcmd__fault__subcmd__clear"
                ;;
            notbefore__subcmd__help__subcmd__fault,list)
                cmd="notbefore__subcmd__help__subcmd__fault__subcmd__list"
                ;;
            notbefore__subcmd__help__subcmd__fleet,apply)
                cmd="notbefore__subcmd__help__subcmd__fleet__subcmd__apply"
                ;;
            notbefore__subcmd__help__subcmd__fleet,diff)
                cmd="notbefore__subcmd__help__subcmd__fleet__subcmd__diff"
                ;;
            notbefore__subcmd__help__subcmd__fleet,show)
                cmd="notbefore__subcmd__help__subcmd__fleet__subcmd__show"
                ;;
            notbefore__subcmd__help__subcmd__host,degraded)
                cmd="notbefore__subcmd__help__subcmd__host__subcmd__degraded"
                ;;
            notbefore__subcmd__help__subcmd__host,failed)
                cmd="notbefore__subcmd__help__subcmd__host__subcmd__failed"
                ;;
            notbefore__subcmd__help__subcmd__host,forget)
                cmd="notbefore__subcmd__help__subcmd__host__subcmd__forget"
                ;;
            notbefore__subcmd__help__subcmd__host,list)
                cmd="notbefore__subcmd__help__subcmd__host__subcmd__list"
                ;;
            notbefore__subcmd__help__subcmd__host,maintain)
                cmd="notbefore__subcmd__help__subcmd__host__subcmd__maintain"
                ;;
            notbefore__subcmd__help__subcmd__host,ok)
                cmd="notbefore__subcmd__help__subcmd__host__subcmd__ok"
                ;;
            notbefore__subcmd__help__subcmd__host,show)
                cmd="notbefore__subcmd__help__subcmd__host__subcmd__show"
                ;;
            notbefore__subcmd__help__subcmd__operation,cancel)
                cmd="notbefore__subcmd__help__subcmd__operation__subcmd__cancel"
                ;;
            notbefore__subcmd__help__subcmd__operation,complete)
                cmd="notbefore__subcmd__help__subcmd__operation__subcmd__complete"
                ;;
            notbefore__subcmd__help__subcmd__operation,list)
                cmd="notbefore__subcmd__help__subcmd__operation__subcmd__list"
                ;;
            notbefore__subcmd__help__subcmd__operation,retry)
                cmd="notbefore__subcmd__help__subcmd__operation__subcmd__retry"
                ;;
            notbefore__subcmd__help__subcmd__operation,show)
                cmd="notbefore__subcmd__help__subcmd__operation__subcmd__show"
                ;;
            notbefore__subcmd__help__subcmd__operation,start)
                cmd="notbefore__subcmd__help__subcmd__operation__subcmd__start"
                ;;
            notbefore__subcmd__help__subcmd__operation,wait)
                cmd="notbefore__subcmd__help__subcmd__operation__subcmd__wait"
                ;;
            notbefore__subcmd__help__subcmd__rehearse,doctor)
                cmd="notbefore__subcmd__help__subcmd__rehearse__subcmd__doctor"
                ;;
            notbefore__subcmd__help__subcmd__rehearse,list)
                cmd="notbefore__subcmd__help__subcmd__rehearse__subcmd__list"
                ;;
            notbefore__subcmd__help__subcmd__rehearse,report)
                cmd="notbefore__subcmd__help__subcmd__rehearse__subcmd__report"
                ;;
            notbefore__subcmd__help__subcmd__rehearse,schema)
                cmd="notbefore__subcmd__help__subcmd__rehearse__subcmd__schema"
                ;;
            notbefore__subcmd__help__subcmd__rehearse,show)
                cmd="notbefore__subcmd__help__subcmd__rehearse__subcmd__show"
                ;;
            notbefore__subcmd__help__subcmd__token,create)
                cmd="notbefore__subcmd__help__subcmd__token__subcmd__create"
                ;;
            notbefore__subcmd__help__subcmd__token,init)
                cmd="notbefore__subcmd__help__subcmd__token__subcmd__init"
                ;;
            notbefore__subcmd__help__subcmd__token,list)
                cmd="notbefore__subcmd__help__subcmd__token__subcmd__list"
                ;;
            notbefore__subcmd__help__subcmd__token,revoke)
                cmd="notbefore__subcmd__help__subcmd__token__subcmd__revoke"
                ;;
            notbefore__subcmd__help__subcmd__token,show)
                cmd="notbefore__subcmd__help__subcmd__token__subcmd__show"
                ;;
            notbefore__subcmd__help__subcmd__vm,add)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__add"
                ;;
            notbefore__subcmd__help__subcmd__vm,delete)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__delete"
                ;;
            notbefore__subcmd__help__subcmd__vm,document)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__document"
                ;;
            notbefore__subcmd__help__subcmd__vm,evict)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__evict"
                ;;
            notbefore__subcmd__help__subcmd__vm,list)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__list"
                ;;
            notbefore__subcmd__help__subcmd__vm,log)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__log"
                ;;
            notbefore__subcmd__help__subcmd__vm,redeploy)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__redeploy"
                ;;
            notbefore__subcmd__help__subcmd__vm,remove)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__remove"
                ;;
            notbefore__subcmd__help__subcmd__vm,restart)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__restart"
                ;;
            notbefore__subcmd__help__subcmd__vm,show)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__show"
                ;;
            notbefore__subcmd__help__subcmd__vm,start)
                cmd="notbefore__subcmd__help__subcmd__vm__subcmd__start"
                ;;
            notbefore__subcmd__host,degraded)
                cmd="notbefore__subcmd__host__subcmd__degraded"
                ;;
            notbefore__subcmd__host,failed)
                cmd="notbefore__subcmd__host__subcmd__failed"
                ;;
            notbefore__subcmd__host,forget)
                cmd="notbefore__subcmd__host__subcmd__forget"
                ;;
            notbefore__subcmd__host,help)
                cmd="notbefore__subcmd__host__subcmd__help"
                ;;
            notbefore__subcmd__host,list)
                cmd="notbefore__subcmd__host__subcmd__list"
                ;;
            notbefore__subcmd__host,maintain)
                cmd="notbefore__subcmd__host__subcmd__maintain"
                ;;
            notbefore__subcmd__host,ok)
                cmd="notbefore__subcmd__host__subcmd__ok"
                ;;
            notbefore__subcmd__host,show)
                cmd="notbefore__subcmd__host__subcmd__show"
                ;;
            notbefore__subcmd__host__subcmd__help,degraded)
                cmd="notbefore__subcmd__host__subcmd__help__subcmd__degraded"
                ;;
            notbefore__subcmd__host__subcmd__help,failed)
                cmd="notbefore__subcmd__host__subcmd__help__subcmd__failed"
                ;;
            notbefore__subcmd__host__subcmd__help,forget)
                cmd="notbefore__subcmd__host__subcmd__help__subcmd__forget"
                ;;
            notbefore__subcmd__host__subcmd__help,help)
                cmd="notbefore__subcmd__host__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__host__subcmd__help,list)
                cmd="notbefore__subcmd__host__subcmd__help__subcmd__list"
                ;;
            notbefore__subcmd__host__subcmd__help,maintain)
                cmd="notbefore__subcmd__host__subcmd__help__subcmd__maintain"
                ;;
            notbefore__subcmd__host__subcmd__help,ok)
                cmd="notbefore__subcmd__host__subcmd__help__subcmd__ok"
                ;;
            notbefore__subcmd__host__subcmd__help,show)
                cmd="notbefore__subcmd__host__subcmd__help__subcmd__show"
                ;;
            notbefore__subcmd__operation,cancel)
                cmd="notbefore__subcmd__operation__subcmd__cancel"
                ;;
            notbefore__subcmd__operation,complete)
                cmd="notbefore__subcmd__operation__subcmd__complete"
                ;;
            notbefore__subcmd__operation,help)
                cmd="notbefore__subcmd__operation__subcmd__help"
                ;;
            notbefore__subcmd__operation,list)
                cmd="notbefore__subcmd__operation__subcmd__list"
                ;;
            notbefore__subcmd__operation,retry)
                cmd="notbefore__subcmd__operation__subcmd__retry"
                ;;
            notbefore__subcmd__operation,show)
                cmd="notbefore__subcmd__operation__subcmd__show"
                ;;
            notbefore__subcmd__operation,start)
                cmd="notbefore__subcmd__operation__subcmd__start"
                ;;
            notbefore__subcmd__operation,wait)
                cmd="notbefore__subcmd__operation__subcmd__wait"
                ;;
            notbefore__subcmd__operation__subcmd__help,cancel)
                cmd="notbefore__subcmd__operation__subcmd__help__subcmd__cancel"
                ;;
            notbefore__subcmd__operation__subcmd__help,complete)
                cmd="notbefore__subcmd__operation__subcmd__help__subcmd__complete"
                ;;
            notbefore__subcmd__operation__subcmd__help,help)
                cmd="notbefore__subcmd__operation__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__operation__subcmd__help,list)
                cmd="notbefore__subcmd__operation__subcmd__help__subcmd__list"
                ;;
            notbefore__subcmd__operation__subcmd__help,retry)
                cmd="notbefore__subcmd__operation__subcmd__help__subcmd__retry"
                ;;
            notbefore__subcmd__operation__subcmd__help,show)
                cmd="notbefore__subcmd__operation__subcmd__help__subcmd__show"
                ;;
            notbefore__subcmd__operation__subcmd__help,start)
                cmd="notbefore__subcmd__operation__subcmd__help__subcmd__start"
                ;;
            notbefore__subcmd__operation__subcmd__help,wait)
                cmd="notbefore__subcmd__operation__subcmd__help__subcmd__wait"
                ;;
            notbefore__subcmd__rehearse,doctor)
                cmd="notbefore__subcmd__rehearse__subcmd__doctor"
                ;;
            notbefore__subcmd__rehearse,help)
                cmd="notbefore__subcmd__rehearse__subcmd__help"
                ;;
            notbefore__subcmd__rehearse,list)
                cmd="notbefore__subcmd__rehearse__subcmd__list"
                ;;
            notbefore__subcmd__rehearse,report)
                cmd="notbefore__subcmd__rehearse__subcmd__report"
                ;;
            notbefore__subcmd__rehearse,schema)
                cmd="notbefore__subcmd__rehearse__subcmd__schema"
                ;;
            notbefore__subcmd__rehearse,show)
                cmd="notbefore__subcmd__rehearse__subcmd__show"
                ;;
            notbefore__subcmd__rehearse__subcmd__help,doctor)
                cmd="notbefore__subcmd__rehearse__subcmd__help__subcmd__doctor"
                ;;
            notbefore__subcmd__rehearse__subcmd__help,help)
                cmd="notbefore__subcmd__rehearse__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__rehearse__subcmd__help,list)
                cmd="notbefore__subcmd__rehearse__subcmd__help__subcmd__list"
                ;;
            notbefore__subcmd__rehearse__subcmd__help,report)
                cmd="notbefore__subcmd__rehearse__subcmd__help__subcmd__report"
                ;;
            notbefore__subcmd__rehearse__subcmd__help,schema)
                cmd="notbefore__subcmd__rehearse__subcmd__help__subcmd__schema"
                ;;
            notbefore__subcmd__rehearse__subcmd__help,show)
                cmd="notbefore__subcmd__rehearse__subcmd__help__subcmd__show"
                ;;
            notbefore__subcmd__token,create)
                cmd="notbefore__subcmd__token__subcmd__create"
                ;;
            notbefore__subcmd__token,help)
                cmd="notbefore__subcmd__token__subcmd__help"
                ;;
            notbefore__subcmd__token,init)
                cmd="notbefore__subcmd__token__subcmd__init"
                ;;
            notbefore__subcmd__token,list)
                cmd="notbefore__subcmd__token__subcmd__list"
                ;;
            notbefore__subcmd__token,revoke)
                cmd="notbefore__subcmd__token__subcmd__revoke"
                ;;
            notbefore__subcmd__token,show)
                cmd="notbefore__subcmd__token__subcmd__show"
                ;;
            notbefore__subcmd__token__subcmd__help,create)
                cmd="notbefore__subcmd__token__subcmd__help__subcmd__create"
                ;;
            notbefore__subcmd__token__subcmd__help,help)
                cmd="notbefore__subcmd__token__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__token__subcmd__help,init)
                cmd="notbefore__subcmd__token__subcmd__help__subcmd__init"
                ;;
            notbefore__subcmd__token__subcmd__help,list)
                cmd="notbefore__subcmd__token__subcmd__help__subcmd__list"
                ;;
            notbefore__subcmd__token__subcmd__help,revoke)
                cmd="notbefore__subcmd__token__subcmd__help__subcmd__revoke"
                ;;
            notbefore__subcmd__token__subcmd__help,show)
                cmd="notbefore__subcmd__token__subcmd__help__subcmd__show"
                ;;
            notbefore__subcmd__vm,add)
                cmd="notbefore__subcmd__vm__subcmd__add"
                ;;
            notbefore__subcmd__vm,delete)
                cmd="notbefore__subcmd__vm__subcmd__delete"
                ;;
            notbefore__subcmd__vm,document)
                cmd="notbefore__subcmd__vm__subcmd__document"
                ;;
            notbefore__subcmd__vm,evict)
                cmd="notbefore__subcmd__vm__subcmd__evict"
                ;;
            notbefore__subcmd__vm,help)
                cmd="notbefore__subcmd__vm__subcmd__help"
                ;;
            notbefore__subcmd__vm,list)
                cmd="notbefore__subcmd__vm__subcmd__list"
                ;;
            notbefore__subcmd__vm,log)
                cmd="notbefore__subcmd__vm__subcmd__log"
                ;;
            notbefore__subcmd__vm,redeploy)
                cmd="notbefore__subcmd__vm__subcmd__redeploy"
                ;;
            notbefore__subcmd__vm,remove)
                cmd="notbefore__subcmd__vm__subcmd__remove"
                ;;
            notbefore__subcmd__vm,restart)
                cmd="notbefore__subcmd__vm__subcmd__restart"
                ;;
            notbefore__subcmd__vm,show)
                cmd="notbefore__subcmd__vm__subcmd__show"
                ;;
            notbefore__subcmd__vm,start)
                cmd="notbefore__subcmd__vm__subcmd__start"
                ;;
            notbefore__subcmd__vm__subcmd__help,add)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__add"
                ;;
            notbefore__subcmd__vm__subcmd__help,delete)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__delete"
                ;;
            notbefore__subcmd__vm__subcmd__help,document)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__document"
                ;;
            notbefore__subcmd__vm__subcmd__help,evict)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__evict"
                ;;
            notbefore__subcmd__vm__subcmd__help,help)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__help"
                ;;
            notbefore__subcmd__vm__subcmd__help,list)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__list"
                ;;
            notbefore__subcmd__vm__subcmd__help,log)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__log"
                ;;
            notbefore__subcmd__vm__subcmd__help,redeploy)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__redeploy"
                ;;
            notbefore__subcmd__vm__subcmd__help,remove)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__remove"
                ;;
            notbefore__subcmd__vm__subcmd__help,restart)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__restart"
                ;;
            notbefore__subcmd__vm__subcmd__help,show)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__show"
                ;;
            notbefore__subcmd__vm__subcmd__help,start)
                cmd="notbefore__subcmd__vm__subcmd__help__subcmd__start"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        notbefore)
            opts="-o -h -V --data --operator-url --operator-ca --operator-without-tls --output --local-time --help --version serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help run check status history reload retry sample help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__check)
            opts="-y -o -h --config --endpoint --name --api-version --state --listen --dry-run --log --log-format --offline --run --type --stage --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-version)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --run)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --type)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stage)
                    COMPREPLY=($(compgen -W "before after both" -- "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__help)
            opts="run check status history reload retry sample help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__help__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__help__subcmd__history)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__help__subcmd__reload)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__help__subcmd__retry)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__help__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__help__subcmd__sample)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__help__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__history)
            opts="-o -h --config --state --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__reload)
            opts="-o -h --config --state --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__retry)
            opts="-o -h --no-wait --config --state --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__run)
            opts="-o -h --config --endpoint --name --api-version --state --listen --dry-run --log --log-format --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-version)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__sample)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__agent__subcmd__status)
            opts="-o -h --config --listen --state --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__approve)
            opts="-o -h --all-mine --endpoint --api-version --name --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-version)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__audit)
            opts="-o -h --since --until --actor --refused --changed --newest --limit --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --actor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__check)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__clock)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help show accept help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__clock__subcmd__accept)
            opts="-y -o -h --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__clock__subcmd__help)
            opts="show accept help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__clock__subcmd__help__subcmd__accept)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__clock__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__clock__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__clock__subcmd__show)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help status hand-over upgrade forget help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__forget)
            opts="-y -o -h --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__hand__subcmd__over)
            opts="-y -o -h --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__help)
            opts="status hand-over upgrade forget help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__help__subcmd__forget)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__help__subcmd__hand__subcmd__over)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__help__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__help__subcmd__upgrade)
            opts="finish"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__help__subcmd__upgrade__subcmd__finish)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__status)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__upgrade)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help finish help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__upgrade__subcmd__finish)
            opts="-y -o -h --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help)
            opts="finish help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help__subcmd__finish)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__cluster__subcmd__upgrade__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__completions)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help bash elvish fish powershell zsh"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__console)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help list show schedule cancel approve start complete retry wait history watch help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__approve)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__cancel)
            opts="-y -o -h --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__complete)
            opts="-o -h --host --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help)
            opts="list show schedule cancel approve start complete retry wait history watch help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__approve)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__cancel)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__complete)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__history)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__retry)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__schedule)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__start)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__wait)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__help__subcmd__watch)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__history)
            opts="-o -h --since --until --scope --vm --host --type --outcome --newest --summary --limit --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --since)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scope)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --vm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --type)
                    COMPREPLY=($(compgen -W "freeze reboot redeploy preempt terminate spotrebalancerecommendation" -- "${cur}"))
                    return 0
                    ;;
                --outcome)
                    COMPREPLY=($(compgen -W "completed cancelled" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__list)
            opts="-o -h --scope --vm --host --type --status --sort --limit --watch --count --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --scope)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --vm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --type)
                    COMPREPLY=($(compgen -W "freeze reboot redeploy preempt terminate spotrebalancerecommendation" -- "${cur}"))
                    return 0
                    ;;
                --status)
                    COMPREPLY=($(compgen -W "scheduled started advisory" -- "${cur}"))
                    return 0
                    ;;
                --sort)
                    COMPREPLY=($(compgen -W "scope time" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__retry)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__schedule)
            opts="-o -h --type --cause --not-before --in --description --duration --force --dry-run --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --type)
                    COMPREPLY=($(compgen -W "freeze reboot redeploy preempt terminate spotrebalancerecommendation" -- "${cur}"))
                    return 0
                    ;;
                --cause)
                    COMPREPLY=($(compgen -W "host-freeze host-reboot host-redeploy live-migration predicted-failure host-failure eviction rebalance deletion user-restart user-redeploy" -- "${cur}"))
                    return 0
                    ;;
                --not-before)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --in)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --description)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__show)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__start)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__wait)
            opts="-o -h --for --timeout --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --for)
                    COMPREPLY=($(compgen -W "read approved started ended" -- "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__event__subcmd__watch)
            opts="-o -h --count --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__export)
            opts="-o -h --without-tokens --skip-damaged --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fault)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help add list clear help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fault__subcmd__add)
            opts="-o -h --vm --on --every --count --for --seconds --status --by --data --operator-url --operator-ca --operator-without-tls --output --local-time --help late-first-answer reset status strict-header not-enabled reset-incarnation skip-incarnations hide-events clock-skew missing-events raw-newlines text-plain empty-body slow-body"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --vm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --on)
                    COMPREPLY=($(compgen -W "polls approvals all" -- "${cur}"))
                    return 0
                    ;;
                --every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --status)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --by)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fault__subcmd__clear)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fault__subcmd__help)
            opts="add list clear help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fault__subcmd__help__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fault__subcmd__help__subcmd__clear)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fault__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fault__subcmd__help__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fault__subcmd__list)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fleet)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help apply diff show help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fleet__subcmd__apply)
            opts="-y -o -h --prune --check --progress --allow-empty --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fleet__subcmd__diff)
            opts="-o -h --prune --progress --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fleet__subcmd__help)
            opts="apply diff show help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fleet__subcmd__help__subcmd__apply)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fleet__subcmd__help__subcmd__diff)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fleet__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fleet__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__fleet__subcmd__show)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__get)
            opts="-o -h --endpoint --api-version --name --watch --count --raw --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --api-version)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__healthy)
            opts="-o -h --alive --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help)
            opts="serve agent status fleet vm host event operation token fault clock cluster audit console healthy openapi export import check rehearse get approve completions help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__agent)
            opts="run check status history reload retry sample"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__agent__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__agent__subcmd__history)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__agent__subcmd__reload)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__agent__subcmd__retry)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__agent__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__agent__subcmd__sample)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__agent__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__approve)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__audit)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__clock)
            opts="show accept"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__clock__subcmd__accept)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__clock__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__cluster)
            opts="status hand-over upgrade forget"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__cluster__subcmd__forget)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__cluster__subcmd__hand__subcmd__over)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__cluster__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__cluster__subcmd__upgrade)
            opts="finish"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__cluster__subcmd__upgrade__subcmd__finish)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 5 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__completions)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__console)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event)
            opts="list show schedule cancel approve start complete retry wait history watch"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__approve)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__cancel)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__complete)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__history)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__retry)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__schedule)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__start)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__wait)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__event__subcmd__watch)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__export)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__fault)
            opts="add list clear"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__fault__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__fault__subcmd__clear)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__fault__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__fleet)
            opts="apply diff show"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__fleet__subcmd__apply)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__fleet__subcmd__diff)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__fleet__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__get)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__healthy)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__host)
            opts="list show maintain degraded failed ok forget"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__host__subcmd__degraded)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__host__subcmd__failed)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__host__subcmd__forget)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__host__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__host__subcmd__maintain)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__host__subcmd__ok)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__host__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__openapi)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__operation)
            opts="list show cancel start complete retry wait"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__operation__subcmd__cancel)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__operation__subcmd__complete)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__operation__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__operation__subcmd__retry)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__operation__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__operation__subcmd__start)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__operation__subcmd__wait)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__rehearse)
            opts="list show doctor report schema"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__rehearse__subcmd__doctor)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__rehearse__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__rehearse__subcmd__report)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__rehearse__subcmd__schema)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__rehearse__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__serve)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__token)
            opts="create init list show revoke"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__token__subcmd__create)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__token__subcmd__init)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__token__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__token__subcmd__revoke)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__token__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm)
            opts="list show log document add remove restart redeploy evict delete start"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__delete)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__document)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__evict)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__log)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__redeploy)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__restart)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__help__subcmd__vm__subcmd__start)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help list show maintain degraded failed ok forget help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__degraded)
            opts="-y -o -h --not-before --in --description --duration --dry-run --yes --wait --timeout --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --not-before)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --in)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --description)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__failed)
            opts="-y -o -h --description --duration --dry-run --yes --wait --timeout --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --description)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__forget)
            opts="-y -o -h --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__help)
            opts="list show maintain degraded failed ok forget help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__help__subcmd__degraded)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__help__subcmd__failed)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__help__subcmd__forget)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__help__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__help__subcmd__maintain)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__help__subcmd__ok)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__list)
            opts="-o -h --limit --watch --count --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__maintain)
            opts="-y -o -h --type --not-before --in --description --duration --dry-run --yes --wait --timeout --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --type)
                    COMPREPLY=($(compgen -W "freeze reboot redeploy live-migration" -- "${cur}"))
                    return 0
                    ;;
                --not-before)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --in)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --description)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__ok)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__host__subcmd__show)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__import)
            opts="-o -h --check --etcd --etcd-prefix --etcd-ca --etcd-cert --etcd-key --etcd-user --etcd-password-file --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --etcd)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-prefix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__openapi)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help list show cancel start complete retry wait help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__cancel)
            opts="-y -o -h --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__complete)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__help)
            opts="list show cancel start complete retry wait help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__help__subcmd__cancel)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__help__subcmd__complete)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__help__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__help__subcmd__retry)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__help__subcmd__start)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__help__subcmd__wait)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__list)
            opts="-o -h --host --type --limit --watch --count --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --type)
                    COMPREPLY=($(compgen -W "freeze reboot redeploy preempt terminate spotrebalancerecommendation" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__retry)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__show)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__start)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__operation__subcmd__wait)
            opts="-o -h --for --timeout --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --for)
                    COMPREPLY=($(compgen -W "read approved started ended" -- "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse)
            opts="-o -h --compress --floor --polls-every --drained --restored --repeat --netns --record --junit --html --data --operator-url --operator-ca --operator-without-tls --output --local-time --help list show doctor report schema help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --compress)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --floor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --polls-every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drained)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --restored)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repeat)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --record)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --junit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__doctor)
            opts="-o -h --only --side-by-side --compress --floor --polls-every --drained --restored --repeat --netns --record --junit --html --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --only)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --side-by-side)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --compress)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --floor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --polls-every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drained)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --restored)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repeat)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --record)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --junit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__help)
            opts="list show doctor report schema help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__help__subcmd__doctor)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__help__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__help__subcmd__report)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__help__subcmd__schema)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__list)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__report)
            opts="-o -h --html --output --data --operator-url --operator-ca --operator-without-tls --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__schema)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__rehearse__subcmd__show)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__serve)
            opts="-o -h --config --print-config --check-config --demo --log-format --root-token-file --fleet --ready-file --guest --guest-vm --strict --lenient --newest-version --rfc1123-everywhere --rate-limit --faults --proxy --proxy-secret-file --operator --operator-cert --operator-key --operator-without-tls --etcd --node --etcd-prefix --etcd-ca --etcd-cert --etcd-key --etcd-user --etcd-password-file --etcd-quota --format-level --node-listen --node-cert --node-key --node-ca --notice --user-operations-max --always-give-notice --keep-history --keep-history-bytes --driver --simulated-duration --exec --exec-host --exec-timeout --exec-host-timeout --exec-attempts --exec-backoff --exec-concurrency --exec-env --data --operator-url --operator-ca --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --root-token-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fleet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ready-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --guest)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --guest-vm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --newest-version)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rfc1123-everywhere)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --faults)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --proxy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --proxy-secret-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-prefix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-quota)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format-level)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node-listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --notice)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --user-operations-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --always-give-notice)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --keep-history)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --keep-history-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --driver)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --simulated-duration)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec-host-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec-attempts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec-backoff)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec-concurrency)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exec-env)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__status)
            opts="-o -h --watch --count --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help create init list show revoke help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__create)
            opts="-o -h --role --on --grant --expires --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --role)
                    COMPREPLY=($(compgen -W "operator tenant viewer" -- "${cur}"))
                    return 0
                    ;;
                --on)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --grant)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --expires)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__help)
            opts="create init list show revoke help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__help__subcmd__create)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__help__subcmd__init)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__help__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__help__subcmd__revoke)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__init)
            opts="-o -h --etcd --etcd-prefix --etcd-ca --etcd-cert --etcd-key --etcd-user --etcd-password-file --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --etcd)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-prefix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --etcd-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__list)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__revoke)
            opts="-y -o -h --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__token__subcmd__show)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help list show log document add remove restart redeploy evict delete start help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__add)
            opts="-o -h --scope --kind --address --update-domain --fault-domain --zone --host --spot --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --scope)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kind)
                    COMPREPLY=($(compgen -W "standalone availability-set cloud-service scale-set" -- "${cur}"))
                    return 0
                    ;;
                --address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --update-domain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fault-domain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --zone)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__delete)
            opts="-y -o -h --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__document)
            opts="-o -h --api-version --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --api-version)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__evict)
            opts="-o -h --not-before --in --dry-run --force --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --not-before)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --in)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help)
            opts="list show log document add remove restart redeploy evict delete start help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__add)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__delete)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__document)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__evict)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__list)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__log)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__redeploy)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__restart)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__help__subcmd__start)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__list)
            opts="-o -h --scope --host --limit --watch --count --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --scope)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__log)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__redeploy)
            opts="-o -h --not-before --in --dry-run --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --not-before)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --in)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__remove)
            opts="-y -o -h --dry-run --yes --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__restart)
            opts="-o -h --not-before --in --dry-run --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --not-before)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --in)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__show)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        notbefore__subcmd__vm__subcmd__start)
            opts="-o -h --data --operator-url --operator-ca --operator-without-tls --output --local-time --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --data)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-url)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --operator-without-tls)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -W "table wide json yaml name" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _notbefore -o nosort -o bashdefault -o default notbefore
else
    complete -F _notbefore -o bashdefault -o default notbefore
fi

_notbefore_names() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" kind=''
    [ "${before#-}" != "$before" ] || before=''
    case "$before" in
        --alive|--all-mine|--allow-empty|--changed|--check|--check-config|--demo|--dry-run|--force|--help|--lenient|--local-time|--netns|--newest|--no-wait|--offline|--print-config|--progress|--prune|--raw|--refused|--skip-damaged|--spot|--strict|--summary|--version|--wait|--watch|--without-tokens|--yes|-V|-h|-y) before='' ;;
    esac
    if [ "$COMP_CWORD" -gt 1 ] && [ -z "$before" ]; then
        case "${COMP_WORDS[1]}" in
            export|import) kind=files ;;
        esac
    fi
    if [ "$COMP_CWORD" -gt 2 ]; then
        case "${COMP_WORDS[1]} ${COMP_WORDS[2]} $before" in
            'fleet apply ') kind=files ;;
            'fleet diff ') kind=files ;;
            'token init ') kind=files ;;
            'rehearse report ') kind=files ;;
            'agent history ') kind=agent-past-events ;;
            'agent retry ') kind=agent-events ;;
            'vm list --scope') kind=scopes ;;
            'vm list --host') kind=hosts ;;
            'vm show ') kind=vms ;;
            'vm log ') kind=vms ;;
            'vm document ') kind=vms ;;
            'vm add --scope') kind=scopes ;;
            'vm add --host') kind=hosts ;;
            'vm remove ') kind=vms ;;
            'vm restart ') kind=vms ;;
            'vm redeploy ') kind=vms ;;
            'vm evict ') kind=vms ;;
            'vm delete ') kind=vms ;;
            'vm start ') kind=vms ;;
            'host show ') kind=hosts ;;
            'host maintain ') kind=hosts ;;
            'host degraded ') kind=hosts ;;
            'host failed ') kind=hosts ;;
            'host ok ') kind=hosts ;;
            'host forget ') kind=hosts ;;
            'event list --scope') kind=scopes ;;
            'event list --vm') kind=vms ;;
            'event list --host') kind=hosts ;;
            'event show ') kind=events ;;
            'event schedule ') kind=vms ;;
            'event cancel ') kind=events ;;
            'event approve ') kind=events ;;
            'event start ') kind=events ;;
            'event complete ') kind=events ;;
            'event retry ') kind=events ;;
            'event wait ') kind=events ;;
            'event history --scope') kind=scopes ;;
            'event history --vm') kind=vms ;;
            'event history --host') kind=hosts ;;
            'operation list --host') kind=hosts ;;
            'operation show ') kind=operations ;;
            'operation cancel ') kind=operations ;;
            'operation start ') kind=operations ;;
            'operation complete ') kind=operations ;;
            'operation retry ') kind=operations ;;
            'operation wait ') kind=operations ;;
            'fault add --vm') kind=vms ;;
        esac
    fi
    if [ "$kind" = files ] && [ "${word#-}" = "$word" ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        # Adds a slash to directories; only a completion in progress has options.
        compopt -o filenames 2>/dev/null
        return 0
    fi
    if [ -n "$kind" ] && [ "${word#-}" = "$word" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" complete-names "$kind" 2>/dev/null)" -- "$word")
        [ "${#COMPREPLY[@]}" -eq 0 ] || return 0
    fi
    _notbefore "$@"
}
complete -F _notbefore_names -o bashdefault -o default notbefore
